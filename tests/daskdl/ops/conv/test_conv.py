"""Convolutions over one, two and three axes, and transposed ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.kernels.convolution import conv2d
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, layouts, normal
from tests.daskdl.nn.like_pytorch import channels_last, channels_second

small = st.integers(1, 3)


@settings(max_examples=30)
@given(small, small, small, small, st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_gradient_of_conv1d(kernel, stride, dilation, groups, before, behind, with_bias):
    filters = 2 * groups
    check_gradient(
        lambda x, w, b: ops.conv1d(
            x, w, b, stride=stride, pad=(before, behind), dilation=dilation, groups=groups
        ),
        normal(2, 9, 3 * groups),
        normal(filters, kernel, 3, seed=1),
        normal(filters, seed=2) if with_bias else None,
    )


@pytest.mark.slow
def test_first_layer_computes_no_gradient_to_its_input(monkeypatch):
    def refuse(*_):
        raise AssertionError("nobody wants this gradient")

    monkeypatch.setattr(conv2d, "input_gradient", refuse)
    weight = Tensor(normal(8, 3, 3, 8), requires_grad=True)
    images = normal(1, 6, 6, 8)
    for x in (images, Tensor(images)):
        ops.mean(ops.conv2d(x, weight, None, pad=(1, 1, 1, 1))).backward()
    assert weight.grad is not None


@pytest.mark.slow
def test_gradient_that_is_a_view_is_taken_as_it_is():
    """Results are often transposed before a loss: then their gradients are not contiguous."""
    check_gradient(
        lambda x, w: ops.take(
            ops.conv2d(x, w, None, pad=(1, 1, 1, 1)), index=(slice(None), slice(None, None, -1))
        ),
        normal(2, 5, 6, 8),
        normal(8, 3, 3, 8),
    )


@pytest.mark.parametrize("settings", [{}, {"stride": (2, 2)}, {"groups": 8}])
def test_read_only_arrays_and_any_layout_give_the_same(settings):
    x, w = normal(2, 9, 9, 8).astype("f4"), normal(8, 3, 3, 8 // settings.get("groups", 1))
    w = w.astype("f4")
    expected = ops.conv2d(x, w, None, **settings).data
    for inputs in zip(layouts(x), layouts(w), strict=True):
        np.testing.assert_array_equal(ops.conv2d(*inputs, None, **settings).data, expected)


@pytest.mark.parametrize(
    ("channels", "filters", "kernel", "stride"),
    [(3, 1, 2, 1), (3, 4, 2, 1), (3, 8, 2, 1), (8, 9, 3, 1), (8, 9, 3, 2)],
)
def test_of_no_images_come_none(channels, filters, kernel, stride):
    """A partition may be empty."""
    x, w = (
        np.zeros((0, 12, 12, channels), "f4"),
        np.zeros((filters, kernel, kernel, channels), "f4"),
    )
    x, w = Tensor(x, requires_grad=True), Tensor(w, requires_grad=True)
    y = ops.conv2d(x, w, None, stride=(stride, stride))
    assert y.shape == (0, *[(12 - kernel) // stride + 1] * 2, filters)
    y.backward(y.data)
    assert (x.grad.shape, np.count_nonzero(w.grad)) == (x.shape, 0)


triples = st.tuples(*[st.integers(1, 2)] * 3)


@settings(max_examples=8)
@given(
    kernel=triples,
    stride=triples,
    dilation=triples,
    pad=st.tuples(*[st.integers(0, 1)] * 6),
    groups=st.sampled_from([1, 2]),
)
def test_gradients_and_adjoints_of_conv3d(kernel, stride, dilation, pad, groups):
    kwargs = {"stride": stride, "pad": pad, "dilation": dilation, "groups": groups}
    x, w = normal(2, 4, 3, 4, 2), normal(4, *kernel, 2 // groups, seed=1)
    check_gradient(lambda x, w, b: ops.conv3d(x, w, b, **kwargs), x, w, normal(4))
    y = ops.conv3d(x, w, None, **kwargs).data
    dy = normal(*y.shape, seed=2)
    reach = [
        (n - 1) * s - pad[2 * i] - pad[2 * i + 1] + (k - 1) * d + 1
        for i, (n, s, k, d) in enumerate(zip(y.shape[1:4], stride, kernel, dilation, strict=True))
    ]
    more = tuple(n - r for n, r in zip(x.shape[1:4], reach, strict=True))
    back = ops.conv_transpose3d(dy, w, None, output_pad=more, **kwargs).data
    assert back.shape == x.shape
    np.testing.assert_allclose((y * dy).sum(), (x * back).sum(), rtol=1e-9)
    check_gradient(
        lambda dy, w, b: ops.conv_transpose3d(dy, w, b, output_pad=more, **kwargs), dy, w, normal(2)
    )


def test_the_first_of_equal_maxima_gets_the_gradient(torch):
    x = np.random.default_rng(0).integers(0, 2, (1, 4, 5, 4, 2)).astype("f4")
    theirs = torch.tensor(x, requires_grad=True)
    y = torch.nn.functional.max_pool3d(channels_second(torch, theirs), 2, 1)
    y.sum().backward()
    ours = Tensor(x, requires_grad=True)
    result = ops.max_pool3d(ours, kernel_size=(2, 2, 2), stride=(1, 1, 1))
    result.backward(np.ones_like(result.data))
    np.testing.assert_array_equal(result.data, channels_last(torch, y).detach())
    np.testing.assert_array_equal(ours.grad, theirs.grad)


@settings(max_examples=40)
@given(
    axis=st.integers(0, 2),
    length=st.integers(1, 7),
    size=st.integers(1, 3),
    stride=st.integers(1, 4),
    dilation=st.integers(1, 3),
    pad=st.tuples(st.integers(0, 4), st.integers(0, 4)),
)
def test_unfold_and_fold(axis, length, size, stride, dilation, pad):
    reach = (size - 1) * dilation + 1
    assume(length + sum(pad) >= reach)
    shape = [2, 3, 2]
    shape[axis] = length
    x, kwargs = normal(*shape), {"stride": stride, "dilation": dilation, "pad": pad}
    y = ops.unfold(x, axis=axis, size=size, **kwargs).data
    padded = np.pad(x, [pad if i == axis else (0, 0) for i in range(3)])
    every = np.lib.stride_tricks.sliding_window_view(padded, reach, axis)[..., ::dilation]
    expected = np.moveaxis(every, -1, axis + 1)
    expected = expected[(*(slice(None),) * axis, slice(None, None, stride))]
    np.testing.assert_array_equal(y, expected)
    check_gradient(lambda t: ops.unfold(t, axis=axis, size=size, **kwargs), x)
    dy = normal(*y.shape, seed=1)
    back = ops.fold(dy, axis=axis, length=length, **kwargs).data
    np.testing.assert_allclose((x * back).sum(), (y * dy).sum(), atol=1e-9)
    check_gradient(lambda t: ops.fold(t, axis=axis, length=length, **kwargs), dy)


pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))


@pytest.mark.slow
@settings(max_examples=30)
@given(
    pairs, pairs, pairs, st.tuples(*[st.integers(0, 2)] * 4), st.integers(0, 2), st.integers(1, 2)
)
@example((3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 0, 4)
@example((5, 5), (1, 1), (1, 1), (2, 2, 2, 2), 0, 4)
def test_gradient_of_transposed(kernel, stride, dilation, pad, more, groups):
    output_pad = tuple(min(more, step - 1) for step in stride)
    lengths = [
        3 * s - pad[2 * i] - pad[2 * i + 1] + (k - 1) * d + 1
        for i, (s, k, d) in enumerate(zip(stride, kernel, dilation, strict=True))
    ]
    assume(min(lengths) > 0)
    channels = 8 if groups == 4 else 3 * groups
    groups = 1 if groups == 4 else groups
    check_gradient(
        lambda x, w, b: ops.conv_transpose2d(
            x,
            w,
            b,
            stride=stride,
            pad=pad,
            output_pad=output_pad,
            dilation=dilation,
            groups=groups,
        ),
        normal(2, 4, 4, channels),
        normal(channels, *kernel, 8 // groups, seed=1),
        normal(8, seed=2),
    )


def test_no_gradient_to_an_input_that_wants_none(monkeypatch):
    weight = Tensor(normal(8, 2, 2, 3), requires_grad=True)
    y = ops.conv_transpose2d(normal(1, 3, 3, 8), weight, None, stride=(2, 2))
    monkeypatch.setattr(conv2d, "forward", None)
    ops.mean(y).backward()
    assert weight.grad is not None
