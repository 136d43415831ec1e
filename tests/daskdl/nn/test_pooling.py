"""Pooling layers of one, two and three axes beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@settings(max_examples=10)
@given(data=st.data(), ceil_mode=st.booleans(), include=st.booleans())
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_agrees_with_pytorch(axes, data, ceil_mode, include, torch):
    size = data.draw(st.tuples(*[st.integers(1, 3)] * axes))
    stride = data.draw(st.tuples(*[st.integers(1, 3)] * axes))
    padding = tuple(data.draw(st.integers(0, k // 2)) for k in size)
    shape = (2, *(6, 5, 4)[:axes], 3)
    for name, more in (("MaxPool", ()), ("AvgPool", (include,))):
        ours = getattr(nn, f"{name}{axes}d")(size, stride, padding, ceil_mode, *more)
        if name == "MaxPool":
            theirs = torch.nn.MaxPool1d if axes == 1 else getattr(torch.nn, f"MaxPool{axes}d")
            theirs = theirs(size, stride, padding, ceil_mode=ceil_mode)
        else:
            given = (size[0], stride[0], padding[0]) if axes == 1 else (size, stride, padding)
            theirs = getattr(torch.nn, f"AvgPool{axes}d")(*given, ceil_mode, include)
        check_like_pytorch(torch, ours, theirs, shape)


def test_stride_is_the_kernels_size_without():
    assert nn.MaxPool2d(2)(np.ones((1, 6, 8, 3), "f4")).shape == (1, 3, 4, 3)
    assert nn.AvgPool3d((1, 2, 3))(np.ones((1, 2, 4, 6, 3), "f4")).shape == (1, 2, 2, 2, 3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x: nn.MaxPool2d(0)(x), r"MaxPool2d\.kernel_size: expected an integer >= 1 .* 0"),
        (lambda x: nn.AvgPool2d(2, (1, 0))(x), r"AvgPool2d\.stride: expected .* found \(1, 0\)"),
        (lambda x: nn.MaxPool1d(2)(x), r"MaxPool1d: expected an input of shape \(N, T, C\), found"),
        (lambda x: nn.MaxPool3d(2)(x), r"MaxPool3d: expected an input of shape \(N, D, H, W, C\)"),
    ],
)
def test_what_does_not_fit_is_said(call, sentence):
    with pytest.raises(ShapeError, match=sentence):
        call(np.ones((1, 4, 4, 3), "f4"))
