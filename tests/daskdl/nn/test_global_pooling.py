"""Pooling over whole samples and over shares of images, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@pytest.mark.parametrize("shape", [(2, 5, 3), (2, 4, 5, 3), (2, 3, 4, 2, 3)])
def test_global_agrees_with_pytorch(shape, torch):
    axes = tuple(range(2, len(shape)))
    check_like_pytorch(torch, nn.GlobalAvgPool(), lambda x: x.mean(axes), shape)
    check_like_pytorch(torch, nn.GlobalMaxPool(), lambda x: x.amax(axes), shape)


@settings(max_examples=15)
@given(size=st.tuples(*[st.integers(1, 5)] * 2), image=st.tuples(*[st.integers(1, 9)] * 2))
@pytest.mark.parametrize("name", ["AdaptiveAvgPool2d", "AdaptiveMaxPool2d"])
def test_adaptive_agrees_with_pytorch(name, size, image, torch):
    check_like_pytorch(
        torch, getattr(nn, name)(size), getattr(torch.nn, name)(size), (2, *image, 3)
    )


def test_other_inputs_are_refused():
    with pytest.raises(ShapeError, match=r"GlobalAvgPool: expected .* found \(2, 3\)"):
        nn.GlobalAvgPool()(np.ones((2, 3), "f4"))
    with pytest.raises(ShapeError, match=r"AdaptiveAvgPool2d: expected .* \(N, H, W, C\), found"):
        nn.AdaptiveAvgPool2d(2)(np.ones((2, 3), "f4"))
