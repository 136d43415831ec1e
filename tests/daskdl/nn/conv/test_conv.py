"""Convolutions with channels last, and the borders that they add."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.nn.conv.padding import Padding
from tests.daskdl.gradients import normal
from tests.daskdl.nn.like_pytorch import check_like_pytorch


def of_axes(data, axes, least, most):
    """Draw a number for each axis."""
    return data.draw(st.tuples(*[st.integers(least, most)] * axes))


@settings(max_examples=13)
@given(data=st.data(), groups=st.sampled_from([1, 2, 4]), bias=st.booleans())
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_agrees_with_pytorch(axes, data, groups, bias, torch):
    size, stride = of_axes(data, axes, 1, 4 - axes // 2), of_axes(data, axes, 1, 3 - axes // 2)
    padding, dilation = of_axes(data, axes, 0, 2 - axes // 3), of_axes(data, axes, 1, 2)
    name = f"Conv{axes}d"
    ours = getattr(nn, name)(4, 8, size, stride, padding, bias, 0, dilation, groups)
    theirs = getattr(torch.nn, name)(4, 8, size, stride, padding, dilation, groups, bias)
    check_like_pytorch(torch, ours, theirs, (2, *((9,), (6, 7), (5, 6, 5))[axes - 1], 4))


@settings(max_examples=10)
@given(data=st.data(), groups=st.sampled_from([1, 2, 4]), bias=st.booleans())
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed_agree_with_pytorch(axes, data, groups, bias, torch):
    size, stride = of_axes(data, axes, 2, 4 - axes // 3), of_axes(data, axes, 1, 3 - axes // 3)
    padding, dilation = of_axes(data, axes, 0, 1), of_axes(data, axes, 1, 2)
    name, more = f"ConvTranspose{axes}d", tuple(step - 1 for step in stride)
    ours = getattr(nn, name)(4, 8, size, stride, padding, more, bias, 0, dilation, groups)
    theirs = getattr(torch.nn, name)(4, 8, size, stride, padding, more, groups, bias, dilation)
    check_like_pytorch(torch, ours, theirs, (2, *(4, 3, 3)[:axes], 4))


def test_causal_results_see_no_later_step():
    layer, x = nn.Conv1d(3, 2, 3, padding="causal", dilation=2, seed=0), normal(1, 8, 3)
    x = x.astype("f4")
    later = x.copy()
    later[:, 5:] += 1
    assert layer(x).shape == (1, 8, 2)
    np.testing.assert_array_equal(layer(later).data[:, :5], layer(x).data[:, :5])
    assert (layer(later).data[:, 5] != layer(x).data[:, 5]).all()


@pytest.mark.parametrize(
    ("stride", "length", "pads"),
    [(1, 9, (1, 2)), (2, 9, (1, 2)), (2, 8, (1, 1)), (3, 9, (0, 1)), (5, 6, (1, 2))],
)
def test_same_padding_is_tensorflows(stride, length, pads):
    """ceil(length / stride) results; the odd zero below and to the right."""
    layer = nn.Conv2d(1, 2, 4, stride, padding="same")
    x = normal(1, length, length, 1).astype("f4")
    zeros = np.pad(x, [(0, 0), pads, pads, (0, 0)])
    unpadded = nn.Conv2d(1, 2, 4, stride)
    unpadded.load_flat(layer.flat)
    expected = unpadded(zeros).data
    np.testing.assert_array_equal(layer(x).data, expected[:, : -(-length // stride)])
    assert layer(x).shape[1] == -(-length // stride)


def test_asymmetric_padding():
    x = normal(2, 5, 6, 3).astype("f4")
    ours, unpadded = nn.Conv2d(3, 4, 3, padding=(1, 0, 2, 1), seed=0), nn.Conv2d(3, 4, 3, seed=0)
    np.testing.assert_array_equal(
        ours(x).data, unpadded(np.pad(x, [(0, 0), (1, 0), (2, 1), (0, 0)])).data
    )


@pytest.mark.parametrize(("stride", "multiplier"), [(1, 1), (2, 3)])
def test_agrees_with_pytorch_separable(stride, multiplier, torch):
    ours = nn.SeparableConv2d(4, 6, 3, stride, 1, multiplier)
    between = 4 * multiplier
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(4, between, 3, stride, 1, groups=4, bias=False),
        torch.nn.Conv2d(between, 6, 1),
    )
    names = {
        "depthwise.weight": "0.weight",
        "pointwise.weight": "1.weight",
        "pointwise.bias": "1.bias",
    }
    check_like_pytorch(torch, ours, theirs, (2, 5, 6, 4), names=names)


@settings(max_examples=10)
@given(
    kernel=st.tuples(*[st.integers(1, 3)] * 2),
    stride=st.tuples(*[st.integers(1, 2)] * 2),
    pad=st.tuples(*[st.integers(0, 1)] * 4),
)
def test_each_place_has_its_own_filter(kernel, stride, pad):
    layer = nn.LocallyConnected2d((4, 5), 3, 2, kernel, stride, pad, seed=0)
    x = normal(2, 4, 5, 3).astype("f4")
    padded = np.pad(x, [(0, 0), pad[:2], pad[2:], (0, 0)])
    rows, columns = layer.places
    y = layer(x).data
    assert y.shape == (2, rows, columns, 2)
    for i in range(rows):
        for j in range(columns):
            top, left = i * stride[0], j * stride[1]
            window = padded[:, top : top + kernel[0], left : left + kernel[1]].reshape(2, -1)
            expected = window @ layer.weight.data[i * columns + j] + layer.bias.data[i, j]
            np.testing.assert_allclose(y[:, i, j], expected, atol=1e-5)


def test_equal_filters_everywhere_are_a_convolution():
    layer, conv = nn.LocallyConnected1d(7, 3, 2, 3, 2, 1, seed=0), nn.Conv1d(3, 2, 3, 2, 1, seed=0)
    layer.images.weight.data[:] = conv.weight.data.reshape(2, -1).T
    layer.images.bias.data[:] = conv.bias.data
    x = normal(2, 7, 3).astype("f4")
    np.testing.assert_allclose(layer(x).data, conv(x).data, atol=1e-6)


@pytest.mark.parametrize(
    ("padding", "lengths", "expected"),
    [
        (1, (7, 7), (1, 1, 1, 1)),
        ((1, 2), (7, 7), (1, 1, 2, 2)),
        ((0, 1, 2, 3), (7, 7), (0, 1, 2, 3)),
        ("same", (7, 8), (2, 2, 0, 1)),
    ],
)
def test_zeros_on_each_side(padding, lengths, expected):
    assert Padding("Layer", padding, (3, 3), (1, 2), (2, 1)).of(lengths) == expected


def test_causal_zeros_lie_before():
    assert Padding("Layer", "causal", (3,), (1,), (2,)).of((5,)) == (4, 0)


@settings(max_examples=15)
@given(
    widths=st.tuples(*[st.integers(0, 3)] * 4),
    mode=st.sampled_from(["constant", "reflect", "edge"]),
)
def test_padding_agrees_with_pytorch(widths, mode, torch):
    above, below, left, right = widths

    def theirs(x):
        name = "replicate" if mode == "edge" else mode
        value = {"value": 2.5} if mode == "constant" else {}
        return torch.nn.functional.pad(x, (left, right, above, below), mode=name, **value)

    check_like_pytorch(torch, nn.Pad(widths, 2.5, mode), theirs, (2, 4, 5, 3))


@given(widths=st.tuples(*[st.integers(0, 2)] * 6))
def test_cropping_undoes_padding(widths):
    x = normal(2, 3, 4, 3, 2)
    padded = nn.Pad(widths, axes=3)(x)
    np.testing.assert_array_equal(nn.Crop(widths, axes=3)(padded).data, x)
