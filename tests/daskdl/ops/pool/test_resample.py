"""Resampling to other sizes: interpolation along axes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.ops.pool.resample import bins, linear_weights
from tests.daskdl.gradients import check_gradient, normal

pairs = st.tuples(st.integers(1, 6), st.integers(1, 6))


@settings(max_examples=10)
@given(size=pairs, image=pairs, align_corners=st.booleans())
def test_gradients(size, image, align_corners):
    x = normal(2, *image, 3)
    check_gradient(lambda t: ops.resize_bilinear(t, size=size, align_corners=align_corners), x)
    check_gradient(lambda t: ops.adaptive_avg_pool2d(t, size=size), x)


@settings(max_examples=10)
@given(scale=st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_nearest(scale):
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


def test_what_does_not_fit_is_said():
    with pytest.raises(SettingsError, match=r"size: expected at least 1, found \(0, 2\)"):
        ops.resize_bilinear(np.ones((1, 2, 2, 1)), size=(0, 2))
    with pytest.raises(ShapeError, match=r"adaptive_avg_pool2d: .* found shape \(2, 2\)"):
        ops.adaptive_avg_pool2d(np.ones((2, 2)), size=(1, 1))


def test_of_no_images_come_none():
    nothing = np.zeros((0, 5, 5, 3), "f4")
    assert ops.resize_bilinear(nothing, size=(4, 3)).shape == (0, 4, 3, 3)
    assert ops.adaptive_avg_pool2d(nothing, size=(2, 1)).shape == (0, 2, 1, 3)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_missing_pixel_spoils_what_it_is_part_of_and_nothing_else(bad):
    image = np.ones((1, 6, 6, 2), "f4")
    image[0, 0, 5, 1] = bad
    same = ops.resize_bilinear(image, size=(6, 6)).data
    np.testing.assert_array_equal(np.isnan(same), ~np.isfinite(image))
    means = ops.adaptive_avg_pool2d(image, size=(3, 3)).data
    assert np.argwhere(np.isnan(means)).tolist() == [[0, 0, 2, 1]]
    np.testing.assert_allclose(means[np.isfinite(means)], 1)


def test_sizes_that_give_no_image_are_refused():
    x = normal(1, 4, 4, 2)
    for operation in (ops.resize_bilinear, ops.adaptive_avg_pool2d, ops.adaptive_max_pool2d):
        with pytest.raises(SettingsError, match=r"size: expected at least 1, found \(0, 1\)"):
            operation(x, size=(0, 1))
        with pytest.raises(ShapeError, match="expected images with pixels"):
            operation(x[:, :0], size=(1, 1))
    for scale in ((1.5, 1), (2, 2, 2)):
        with pytest.raises(SettingsError, match="expected 2 whole numbers of at least 1, found"):
            ops.upsample_nearest(x, scale=scale)


def points(lengths, sizes):
    """Return where the pixels of the result lie, edges on edges."""
    return [
        None,
        *((np.arange(m) + 0.5) * n / m - 0.5 for n, m in zip(lengths, sizes, strict=True)),
        None,
    ]


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize("sizes", [(9, 11), (3, 4), (5, 7)])
@pytest.mark.parametrize("antialias", [False, True])
def test_images(mode, sizes, antialias, torch):
    if antialias and mode == "nearest":
        pytest.skip("there is no such thing")
    x = normal(2, 5, 7, 3)
    scales = [1, sizes[0] / 5, sizes[1] / 7, 1]
    given = {
        "points": points((5, 7), sizes),
        "mode": mode,
        "scales": scales,
        "antialias": antialias,
    }
    if antialias:
        given |= {"exclude_outside": True, "cubic": -0.5}
    check_gradient(lambda t: ops.interpolate(t, **given), x)
    names = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest-exact"}
    right = torch.nn.functional.interpolate(
        torch.tensor(x).movedim(-1, 1), sizes, mode=names[mode], antialias=antialias
    )
    if mode == "nearest":
        given["nearest"] = "round_prefer_ceil"
    np.testing.assert_allclose(ops.interpolate(x, **given).data, right.movedim(1, -1), atol=1e-9)


def test_unknown_modes_are_said():
    with pytest.raises(SettingsError, match="expected nearest, linear or cubic, found 'area'"):
        ops.interpolate(np.ones((1, 2, 2, 1)), points=points((2, 2), (3, 3)), mode="area")
