"""Pooling layers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn, ops
from tests.daskdl.gradients import normal
from tests.daskdl.nn.like_pytorch import check_like_pytorch


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
            window = (size[0], stride[0], padding[0]) if axes == 1 else (size, stride, padding)
            theirs = getattr(torch.nn, f"AvgPool{axes}d")(*window, ceil_mode, include)
        check_like_pytorch(torch, ours, theirs, shape)


def test_stride_is_the_kernels_size_by_default():
    assert nn.MaxPool2d(2)(np.ones((1, 6, 8, 3), "f4")).shape == (1, 3, 4, 3)
    assert nn.AvgPool3d((1, 2, 3))(np.ones((1, 2, 4, 6, 3), "f4")).shape == (1, 2, 2, 2, 3)


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


X = normal(2, 6, 7, 3).astype("f4")
REGIONS = np.array([[0, 0, 0, 8, 9], [1, 2, 3, 7, 8]], "f4")


def test_settings_reach_the_operation():
    settings = {"size": (2, 3), "scale": 0.5}
    expected = ops.roi_pool(X, REGIONS, **settings).data
    np.testing.assert_array_equal(nn.RoIPool((2, 3), 0.5)(X, REGIONS).data, expected)
    np.testing.assert_array_equal(nn.RoIPool((2, 3), 0.5)((X, REGIONS)).data, expected)
    expected = ops.roi_align(X, REGIONS, samples=3, aligned=True, **settings).data
    layer = nn.RoIAlign((2, 3), 0.5, samples=3, aligned=True)
    np.testing.assert_array_equal(layer(X, REGIONS).data, expected)


pairs = st.tuples(st.integers(1, 7), st.integers(1, 7))


@settings(max_examples=15)
@given(size=pairs, image=pairs, align_corners=st.booleans())
def test_resize_agrees_with_pytorch(size, image, align_corners, torch):
    def theirs(x):
        return torch.nn.functional.interpolate(
            x, size, mode="bilinear", align_corners=align_corners
        )

    check_like_pytorch(torch, nn.Resize(size, align_corners), theirs, (2, *image, 3))


@pytest.mark.parametrize(
    ("scale", "mode", "shape"),
    [
        (3, "nearest", (2, 4, 2)),
        ((2, 3), "nearest", (2, 3, 4, 2)),
        ((1, 2, 3), "nearest", (2, 2, 3, 2, 2)),
        (2, "bilinear", (2, 3, 4, 2)),
    ],
)
def test_upsampling_agrees_with_pytorch(scale, mode, shape, torch):
    def theirs(x):
        return torch.nn.functional.interpolate(x, scale_factor=scale, mode=mode)

    check_like_pytorch(torch, nn.Upsample(scale, mode), theirs, shape)
