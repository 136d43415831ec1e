"""Pooling along any axes, with holes and overhang: gradients and PyTorch's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import check_gradient, normal

#: axes, kernel, stride, padding, dilation, ceil
CASES = [
    ((9,), (3,), (2,), (1,), (2,), False),
    ((7, 8), (2, 3), (2, 1), (1, 0), (1, 2), True),
    ((8, 7), (3, 3), (2, 2), (1, 1), (2, 1), False),
    ((5, 6, 4), (2, 2, 3), (2, 1, 1), (0, 1, 1), (1, 1, 1), True),
]


def settings(kernel, stride, pad, dilation, ceil):
    return {
        "kernel_size": kernel,
        "stride": stride,
        "pad": tuple(n for p in pad for n in (p, p)),
        "dilation": dilation,
        "ceil_mode": ceil,
    }


@pytest.mark.parametrize(("lengths", "kernel", "stride", "pad", "dilation", "ceil"), CASES)
def test_maxima(lengths, kernel, stride, pad, dilation, ceil, torch):
    x = normal(2, *lengths, 3)
    given = settings(kernel, stride, pad, dilation, ceil)
    y, places = ops.max_pool_nd(x, **given)
    theirs = getattr(torch.nn.functional, f"max_pool{len(lengths)}d")
    first = torch.tensor(x).movedim(-1, 1)
    right, at = theirs(first, kernel, stride, pad, dilation, ceil, return_indices=True)
    np.testing.assert_array_equal(y.data, right.movedim(1, -1))
    np.testing.assert_array_equal(places.data, at.movedim(1, -1))
    check_gradient(lambda t: ops.max_pool_nd(t, **given)[0], x)


@pytest.mark.parametrize(("lengths", "kernel", "stride", "pad", "dilation", "ceil"), CASES)
def test_sums(lengths, kernel, stride, pad, dilation, ceil, torch):
    x = normal(2, *lengths, 3)
    given = settings(kernel, stride, pad, dilation, ceil)
    check_gradient(lambda t: ops.sum_pool_nd(t, **given), x)
    if set(dilation) == {1}:
        size = np.prod(kernel)
        theirs = getattr(torch.nn.functional, f"avg_pool{len(lengths)}d")
        if not ceil:
            right = theirs(torch.tensor(x).movedim(-1, 1), kernel, stride, pad, ceil) * size
            np.testing.assert_allclose(
                ops.sum_pool_nd(x, **given).data, right.movedim(1, -1), atol=1e-12
            )


def test_windows_that_do_not_fit_are_said():
    with pytest.raises(ShapeError, match="max_pool_nd: expected x that holds a window"):
        ops.max_pool_nd(np.ones((1, 2, 1)), **settings((3,), (1,), (0,), (1,), False))
