"""Layers refuse settings and inputs that do not fit, in one sentence."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from daskdl.nn.arguments import check_axes, check_last_axis, pair, sides, sizes


def test_one_number_stands_for_all():
    assert sizes("x", 2, 3) == (2, 2, 2)
    assert sizes("x", [1, 2, 3], 3) == (1, 2, 3)
    assert pair("x", (0, 1), least=0) == (0, 1)
    assert sides("x", 1, 2) == (1, 1, 1, 1)
    assert sides("x", (1, 2), 2) == (1, 1, 2, 2)
    assert sides("x", (1, 2, 3, 4), 2) == (1, 2, 3, 4)
    assert sides("x", (1, 2), 1) == (1, 2)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "a", (1,), (1, 0), None])
def test_other_values_are_quoted(value):
    with pytest.raises(ShapeError, match=r"^Layer\.size: expected an integer >= 1 or a pair"):
        sizes("Layer.size", value, 2)


def test_inputs_are_named_by_their_axes():
    with pytest.raises(ShapeError, match=r"ReLU: expected an input of shape \(N, T, 3\), channels"):
        check_last_axis(nn.ReLU(), np.ones((2, 3)), 3, 3)
    with pytest.raises(ShapeError, match=r"ReLU: expected .* \(N, H, W, C\), found \(2, 3\)"):
        check_axes(nn.ReLU(), np.ones((2, 3)), "N H W C")
