"""Convolutions of volumes, and windows as rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.nn.beside_pytorch import channels_last, channels_second

triples = st.tuples(*[st.integers(1, 2)] * 3)


@settings(max_examples=8)
@given(
    kernel=triples,
    stride=triples,
    dilation=triples,
    pad=st.tuples(*[st.integers(0, 1)] * 6),
    groups=st.sampled_from([1, 2]),
)
def test_gradients_and_adjoints(kernel, stride, dilation, pad, groups):
    given_ = {"stride": stride, "pad": pad, "dilation": dilation, "groups": groups}
    x, w = normal(2, 4, 3, 4, 2), normal(4, *kernel, 2 // groups, seed=1)
    check_gradient(lambda x, w, b: ops.conv3d(x, w, b, **given_), x, w, normal(4))
    y = ops.conv3d(x, w, None, **given_).data
    dy = normal(*y.shape, seed=2)
    reach = [
        (n - 1) * s - pad[2 * i] - pad[2 * i + 1] + (k - 1) * d + 1
        for i, (n, s, k, d) in enumerate(zip(y.shape[1:4], stride, kernel, dilation, strict=True))
    ]
    more = tuple(n - r for n, r in zip(x.shape[1:4], reach, strict=True))
    back = ops.conv_transpose3d(dy, w, None, output_pad=more, **given_).data
    assert back.shape == x.shape
    np.testing.assert_allclose((y * dy).sum(), (x * back).sum(), rtol=1e-9)
    check_gradient(
        lambda dy, w, b: ops.conv_transpose3d(dy, w, b, output_pad=more, **given_), dy, w, normal(2)
    )


def test_what_does_not_fit_is_said():
    x, w = np.ones((1, 2, 3, 3, 2)), np.ones((4, 1, 2, 2, 2))
    with pytest.raises(ShapeError, match=r"conv3d: expected .* found \(1, 2, 3, 3, 2\) and \(4, 1"):
        ops.conv3d(x, w[..., :1], None)
    with pytest.raises(ShapeError, match="conv_transpose3d: expected x"):
        ops.conv_transpose3d(x, w, None)
    with pytest.raises(ShapeError, match="leaves nothing of the result"):
        ops.conv_transpose3d(np.ones((1, 2, 3, 3, 4)), w, None, pad=(1, 1, 0, 0, 0, 0))


@pytest.mark.parametrize("name", ["max_pool", "avg_pool"])
def test_gradients(name):
    check_gradient(
        lambda t: getattr(ops, f"{name}1d")(t, kernel_size=3, stride=2, pad=(1, 0)), normal(2, 7, 3)
    )
    check_gradient(
        lambda t: getattr(ops, f"{name}3d")(
            t, kernel_size=(2, 3, 1), stride=(1, 2, 2), pad=(0, 1, 1, 0, 0, 0), ceil_mode=True
        ),
        normal(2, 3, 5, 4, 3),
    )


def test_of_equals_the_first_of_the_window_gets_the_gradient(torch):
    x = np.random.default_rng(0).integers(0, 2, (1, 4, 5, 4, 2)).astype("f4")
    theirs = torch.tensor(x, requires_grad=True)
    y = torch.nn.functional.max_pool3d(channels_second(torch, theirs), 2, 1)
    y.sum().backward()
    ours = Tensor(x, requires_grad=True)
    result = ops.max_pool3d(ours, kernel_size=(2, 2, 2), stride=(1, 1, 1))
    result.backward(np.ones_like(result.data))
    np.testing.assert_array_equal(result.data, channels_last(torch, y).detach())
    np.testing.assert_array_equal(ours.grad, theirs.grad)


def test_what_does_not_fit_is_said_volumes():
    with pytest.raises(ShapeError, match=r"expected x of shape \(N, T, C\), found \(2, 3\)"):
        ops.max_pool1d(np.ones((2, 3)), kernel_size=2)
    with pytest.raises(ShapeError, match=r"expected x of shape \(N, D, H, W, C\), found \(2, 3\)"):
        ops.avg_pool3d(np.ones((2, 3)), kernel_size=(2, 2, 2))


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


def test_what_does_not_fit_is_said_unfold():
    with pytest.raises(ShapeError, match=r"unfold: expected at least 3 elements along axis 1"):
        ops.unfold(np.ones((3, 2)), axis=1, size=3)
    with pytest.raises(ShapeError, match=r"fold: expected windows of an axis of 5, found \(2, 3\)"):
        ops.fold(np.ones((2, 3)), axis=0, length=5)
