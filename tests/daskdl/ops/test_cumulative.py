"""Running sums and products: gradients, PyTorch's numbers, from either end."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.peers import check_agreement


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_gradients(axis, exclusive, reverse):
    settings = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    for function in (ops.cumsum, ops.cumprod):
        check_gradient(lambda t, f=function: f(t, **settings), normal(3, 4, 2))


def test_pytorch_has_the_same(torch):
    x = normal(3, 4)
    check_agreement(torch, lambda t: ops.cumsum(t, axis=1), lambda t: t.cumsum(1), x)
    check_agreement(torch, lambda t: ops.cumprod(t, axis=0), lambda t: t.cumprod(0), x)


def test_an_exclusive_sum_starts_at_nothing():
    x = np.array([1.0, 2, 3])
    np.testing.assert_array_equal(ops.cumsum(x, axis=0, exclusive=True).data, [0, 1, 3])
    np.testing.assert_array_equal(
        ops.cumprod(x, axis=0, exclusive=True, reverse=True).data, [6, 3, 1]
    )
    with pytest.raises(ShapeError, match=r"cumsum: expected an axis of x, whose shape is \(3,\)"):
        ops.cumsum(x, axis=1)
