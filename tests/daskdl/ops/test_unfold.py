"""Windows along an axis: gradients, numpy's windows, and each other's adjoint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import check_gradient, normal


@settings(max_examples=40)
@given(
    axis=st.integers(0, 2),
    length=st.integers(1, 7),
    size=st.integers(1, 3),
    stride=st.integers(1, 4),
    dilation=st.integers(1, 3),
    pad=st.tuples(st.integers(0, 4), st.integers(0, 4)),
)
def test_windows(axis, length, size, stride, dilation, pad):
    reach = (size - 1) * dilation + 1
    assume(length + sum(pad) >= reach)
    shape = [2, 3, 2]
    shape[axis] = length
    x, given_ = normal(*shape), {"stride": stride, "dilation": dilation, "pad": pad}
    y = ops.unfold(x, axis=axis, size=size, **given_).data
    padded = np.pad(x, [pad if i == axis else (0, 0) for i in range(3)])
    every = np.lib.stride_tricks.sliding_window_view(padded, reach, axis)[..., ::dilation]
    expected = np.moveaxis(every, -1, axis + 1)
    expected = expected[(*(slice(None),) * axis, slice(None, None, stride))]
    np.testing.assert_array_equal(y, expected)
    check_gradient(lambda t: ops.unfold(t, axis=axis, size=size, **given_), x)
    dy = normal(*y.shape, seed=1)
    back = ops.fold(dy, axis=axis, length=length, **given_).data
    np.testing.assert_allclose((x * back).sum(), (y * dy).sum(), atol=1e-9)
    check_gradient(lambda t: ops.fold(t, axis=axis, length=length, **given_), dy)


def test_what_does_not_fit_is_said():
    with pytest.raises(ShapeError, match=r"unfold: expected at least 3 elements along axis 1"):
        ops.unfold(np.ones((3, 2)), axis=1, size=3)
    with pytest.raises(ShapeError, match=r"fold: expected windows of an axis of 5, found \(2, 3\)"):
        ops.fold(np.ones((2, 3)), axis=0, length=5)
