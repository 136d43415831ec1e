"""Trigonometric functions: gradients, and PyTorch's numbers, also where there is no angle."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.peers import check_agreement

NAMES = (
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "arcsinh", "arccosh",
    "arctanh",
)  # fmt: skip
EDGES = np.array([-np.inf, -1.5, -1, -0.0, 0, 0.5, 1, 1.5, np.inf, np.nan])


@pytest.mark.parametrize("name", NAMES)
def test_functions(name, torch):
    function, theirs = getattr(ops, name), getattr(torch, name)
    x = np.tanh(normal(3, 4)) * 0.9
    x = 1.5 + np.abs(x) if name == "arccosh" else x
    check_gradient(function, x)
    check_agreement(torch, function, theirs, x)
    np.testing.assert_allclose(function(EDGES).data, theirs(torch.tensor(EDGES)), rtol=1e-12)
