"""Transposed and locally connected convolution layers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@settings(max_examples=10)
@given(
    size=st.integers(2, 4),
    stride=st.integers(1, 3),
    padding=st.integers(0, 1),
    groups=st.sampled_from([1, 2]),
    bias=st.booleans(),
)
@pytest.mark.parametrize("axes", [1, 2])
def test_agrees_with_pytorch(axes, size, stride, padding, groups, bias, torch):
    name = f"ConvTranspose{axes}d"
    ours = getattr(nn, name)(4, 6, size, stride, padding, stride - 1, bias, 0, 1, groups)
    theirs = getattr(torch.nn, name)(4, 6, size, stride, padding, stride - 1, groups, bias)
    check_like_pytorch(torch, ours, theirs, (2, *(4, 3)[:axes], 4))


@settings(max_examples=8)
@given(
    size=st.tuples(*[st.integers(2, 3)] * 3),
    stride=st.tuples(*[st.integers(1, 2)] * 3),
    padding=st.tuples(*[st.integers(0, 1)] * 3),
    groups=st.sampled_from([1, 2]),
)
def test_of_volumes_agrees_with_pytorch(size, stride, padding, groups, torch):
    more = tuple(step - 1 for step in stride)
    ours = nn.ConvTranspose3d(2, 4, size, stride, padding, more, True, 0, 1, groups)
    theirs = torch.nn.ConvTranspose3d(2, 4, size, stride, padding, more, groups)
    check_like_pytorch(torch, ours, theirs, (2, 3, 4, 3, 2))


def test_other_inputs_are_refused():
    with pytest.raises(ShapeError, match=r"ConvTranspose2d: expected .* \(N, H, W, 4\)"):
        nn.ConvTranspose2d(4, 3, 2)(np.ones((1, 3, 3, 3), "f4"))
    with pytest.raises(ShapeError, match=r"ConvTranspose1d: expected .* \(N, T, 4\)"):
        nn.ConvTranspose1d(4, 3, 2)(np.ones((1, 3, 3), "f4"))
    with pytest.raises(ShapeError, match=r"ConvTranspose3d\.stride: expected .* 3 .* \(1, 2\)"):
        nn.ConvTranspose3d(4, 3, 2, (1, 2))


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


def test_of_one_filter_everywhere_it_is_a_convolution():
    layer, conv = nn.LocallyConnected1d(7, 3, 2, 3, 2, 1, seed=0), nn.Conv1d(3, 2, 3, 2, 1, seed=0)
    layer.images.weight.data[:] = conv.weight.data.reshape(2, -1).T
    layer.images.bias.data[:] = conv.bias.data
    x = normal(2, 7, 3).astype("f4")
    np.testing.assert_allclose(layer(x).data, conv(x).data, atol=1e-6)


def test_other_sizes_are_refused():
    with pytest.raises(ShapeError, match=r"LocallyConnected2d: expected images of \(4, 5\)"):
        nn.LocallyConnected2d((4, 5), 3, 2, 3)(np.ones((1, 5, 4, 3), "f4"))
    with pytest.raises(ShapeError, match="LocallyConnected1d: expected sequences of 4 steps"):
        nn.LocallyConnected1d(4, 3, 2, 3)(np.ones((1, 5, 3), "f4"))
    with pytest.raises(ShapeError, match="kernel that fits"):
        nn.LocallyConnected2d(2, 3, 2, 3)
