"""Error function, powers and remainders: gradients, and PyTorch's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.peers import check_agreement


def test_erf(torch):
    check_gradient(ops.erf, normal(3, 4))
    check_agreement(torch, ops.erf, torch.erf, normal(3, 4))


@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4))])
def test_pow(shapes, torch):
    base, exponent = np.abs(normal(*shapes[0])) + 0.2, normal(*shapes[1], seed=1)
    check_gradient(ops.pow, base, exponent)
    check_agreement(torch, ops.pow, torch.pow, base, exponent)


def test_pow_at_zero_and_below(torch):
    base = np.array([-2.0, 0, 0, -2.0])
    exponent = np.array([2.0, 2.0, 0.0, 0.5])
    np.testing.assert_array_equal(ops.pow(base, exponent).data, [4, 0, 1, np.nan])


@pytest.mark.parametrize("truncated", [False, True])
def test_remainder(truncated, torch):
    a, b = 5 * normal(3, 4), normal(3, 4, seed=1) + 3
    theirs = torch.fmod if truncated else torch.remainder
    check_gradient(lambda a, b: ops.remainder(a, b, truncated=truncated), a, b)
    check_agreement(torch, lambda a, b: ops.remainder(a, b, truncated=truncated), theirs, a, b)
