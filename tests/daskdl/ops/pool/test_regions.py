"""Pooling of regions, adaptive pooling, and resampling of images."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.ops.pool.resample import bins, linear_weights
from tests.daskdl.gradients import check_gradient, normal

REGIONS = np.array([[0, 0, 0, 5, 6], [1, 1.2, 2.6, 4.1, 3], [1, -3, 3, 2, 12], [0, 7, 7, 9, 9]])


@settings(max_examples=10)
@given(size=st.tuples(*[st.integers(1, 4)] * 2), image=st.tuples(*[st.integers(1, 7)] * 2))
def test_adaptive_maxima(size, image):
    check_gradient(lambda t: ops.adaptive_max_pool2d(t, size=size), normal(2, *image, 3))


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (7, 7)])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_pool_box_by_box(size, scale):
    x = normal(2, 7, 6, 3)
    y = ops.roi_pool(x, REGIONS, size=size, scale=scale).data
    for r, region in enumerate(REGIONS):
        corners = [math.floor(abs(v * scale) + 0.5) * (-1 if v < 0 else 1) for v in region[1:]]
        left, top, right, bottom = corners
        for i, j in np.ndindex(*size):
            tall, wide = max(bottom - top + 1, 1) / size[0], max(right - left + 1, 1) / size[1]
            rows = range(7)[
                max(0, math.floor(i * tall) + top) : max(0, math.ceil((i + 1) * tall) + top)
            ]
            columns = range(6)[
                max(0, math.floor(j * wide) + left) : max(0, math.ceil((j + 1) * wide) + left)
            ]
            box = x[int(region[0])][np.ix_(rows, columns)].reshape(-1, 3)
            expected = box.max(0) if len(box) else 0
            np.testing.assert_array_equal(y[r, i, j], np.broadcast_to(expected, 3))
    check_gradient(lambda t: ops.roi_pool(t, REGIONS, size=size, scale=scale), x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_boxes_of_a_pool_keep_within_the_region(dtype):
    x = np.arange(40.0, dtype=np.float32) * np.ones((40, 1), np.float32)
    for pixels, count in [(8, 3), (11, 6), (13, 7), (22, 6)]:
        region = np.array([[0, 0, 0, pixels - 1, pixels - 1]], dtype)
        y = ops.roi_pool(x[None, :, :, None], region, size=(1, count)).data
        last = [-(-(i + 1) * pixels // count) - 1 for i in range(count)]
        np.testing.assert_array_equal(y[0, 0, :, 0], last)


@pytest.mark.parametrize("samples", [0, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_align_point_by_point(samples, aligned):
    x, size, scale = normal(2, 7, 6, 3), (2, 3), 0.9
    options = {"size": size, "scale": scale, "samples": samples, "aligned": aligned}
    y = ops.roi_align(x, REGIONS, **options).data

    def value(image, row, column):
        if not (-1 <= row <= 7 and -1 <= column <= 6):
            return np.zeros(3)
        row, column = min(max(row, 0), 6), min(max(column, 0), 5)
        i, j = int(row), int(column)
        total = np.zeros(3)
        for k, m in np.ndindex(2, 2):
            weight = (row - i if k else 1 - row + i) * (column - j if m else 1 - column + j)
            total += weight * x[image, min(i + k, 6), min(j + m, 5)]
        return total

    for r, region in enumerate(REGIONS):
        left, top, right, bottom = region[1:] * scale - 0.5 * aligned
        tall, wide = bottom - top, right - left
        tall, wide = (tall, wide) if aligned else (max(tall, 1), max(wide, 1))
        down = samples or math.ceil(tall / size[0])
        across = samples or math.ceil(wide / size[1])
        for i, j in np.ndindex(*size):
            points = [
                value(
                    int(region[0]),
                    top + (i + (k + 0.5) / down) * tall / size[0],
                    left + (j + (m + 0.5) / across) * wide / size[1],
                )
                for k, m in np.ndindex(down, across)
            ]
            np.testing.assert_allclose(y[r, i, j], np.mean(points, 0), atol=1e-9)
    check_gradient(lambda t: ops.roi_align(t, REGIONS, **options), x)


def test_a_missing_pixel_is_seen_by_regions_that_touch_it():
    image = np.ones((1, 8, 8, 1))
    image[0, 0, 0] = np.nan
    regions = np.array([[0, 3.0, 3, 5, 5], [0, 0, 0, 2, 2]])
    means = ops.roi_align(image, regions, size=(1, 1)).data.ravel()
    assert means[0] == 1
    assert np.isnan(means[1])


pairs = st.tuples(st.integers(1, 6), st.integers(1, 6))


@settings(max_examples=10)
@given(size=pairs, image=pairs, align_corners=st.booleans())
def test_gradients_of_bilinear_and_mean_resizing(size, image, align_corners):
    x = normal(2, *image, 3)
    check_gradient(lambda t: ops.resize_bilinear(t, size=size, align_corners=align_corners), x)
    check_gradient(lambda t: ops.adaptive_avg_pool2d(t, size=size), x)


@settings(max_examples=10)
@given(scale=st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_upsample_nearest(scale):
    x = normal(2, *(2 for _ in scale), 3)
    check_gradient(lambda t: ops.upsample_nearest(t, scale=tuple(scale)), x)
    expected = x
    for axis, times in enumerate(scale, start=1):
        expected = expected.repeat(times, axis)
    np.testing.assert_array_equal(ops.upsample_nearest(x, scale=tuple(scale)).data, expected)


@given(axis=st.integers(0, 2), rows=st.integers(1, 4))
def test_a_matrix_along_an_axis(axis, rows):
    x = normal(2, 3, 4)
    matrix = normal(rows, x.shape[axis], seed=1)
    expected = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
    np.testing.assert_allclose(ops.along(x, matrix=matrix, axis=axis).data, expected, atol=1e-12)
    check_gradient(lambda t: ops.along(t, matrix=matrix, axis=axis), x)


def test_weights_and_bins():
    np.testing.assert_allclose(
        linear_weights(np.array([0, 0.25, 2.0, 2.5]), 3),
        [[1, 0, 0], [0.75, 0.25, 0], [0, 0, 1], [0, 0, 1]],
    )
    assert bins(5, 2) == [(0, 3), (2, 5)]
    assert bins(2, 3) == [(0, 1), (0, 2), (1, 2)]


def test_of_no_images_come_none():
    nothing = np.zeros((0, 5, 5, 3), "f4")
    assert ops.resize_bilinear(nothing, size=(4, 3)).shape == (0, 4, 3, 3)
    assert ops.adaptive_avg_pool2d(nothing, size=(2, 1)).shape == (0, 2, 1, 3)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_missing_pixel_spoils_only_pixels_that_include_it(bad):
    image = np.ones((1, 6, 6, 2), "f4")
    image[0, 0, 5, 1] = bad
    same = ops.resize_bilinear(image, size=(6, 6)).data
    np.testing.assert_array_equal(np.isnan(same), ~np.isfinite(image))
    means = ops.adaptive_avg_pool2d(image, size=(3, 3)).data
    assert np.argwhere(np.isnan(means)).tolist() == [[0, 0, 2, 1]]
    np.testing.assert_allclose(means[np.isfinite(means)], 1)


def points(lengths, sizes):
    """Return the positions of the result's pixels in x, edges on edges."""
    return [
        None,
        *((np.arange(m) + 0.5) * n / m - 0.5 for n, m in zip(lengths, sizes, strict=True)),
        None,
    ]


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize("sizes", [(9, 11), (3, 4), (5, 7)])
@pytest.mark.parametrize("antialias", [False, True])
def test_interpolate_agrees_with_pytorch(mode, sizes, antialias, torch):
    if antialias and mode == "nearest":
        pytest.skip("nearest pixels have no antialiasing")
    x = normal(2, 5, 7, 3)
    scales = [1, sizes[0] / 5, sizes[1] / 7, 1]
    options = {
        "points": points((5, 7), sizes),
        "mode": mode,
        "scales": scales,
        "antialias": antialias,
    }
    if antialias:
        options |= {"exclude_outside": True, "cubic": -0.5}
    check_gradient(lambda t: ops.interpolate(t, **options), x)
    names = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest-exact"}
    right = torch.nn.functional.interpolate(
        torch.tensor(x).movedim(-1, 1), sizes, mode=names[mode], antialias=antialias
    )
    if mode == "nearest":
        options["nearest"] = "round_prefer_ceil"
    np.testing.assert_allclose(ops.interpolate(x, **options).data, right.movedim(1, -1), atol=1e-9)
