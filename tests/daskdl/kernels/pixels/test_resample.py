"""Kernels of pixels: resampling, interpolation, warps and colours."""

from __future__ import annotations

import math
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import ndimage

from daskdl.kernels.pixels.colour import channel_means, mix
from daskdl.kernels.pixels.resample import resample
from daskdl.kernels.pixels.warp import warp
from daskdl.kernels.runtime.threads import thread_budget


def triangle(x):
    return np.maximum(0, 1 - np.abs(x))


def cubic(x):
    x = np.abs(x)
    near, far = (1.5 * x - 2.5) * x * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def weights(length, resized, filter, antialias):
    """Return weights (resized, length): beyond the edge, cut with antialias, else folded in."""
    scale = length / resized
    stretch = max(scale, 1) if antialias else 1
    centres = (np.arange(resized) + 0.5) * scale
    pixels = np.arange(-10, length + 10)
    matrix = filter((pixels + 0.5 - centres[:, None]) / stretch)
    if antialias:
        matrix = matrix[:, 10:-10]
        return matrix / matrix.sum(1, keepdims=True)
    folded = np.zeros((resized, length))
    np.add.at(folded.T, np.clip(pixels, 0, length - 1), matrix.T)
    return folded


@contextmanager
def rooms(*shapes, dtype):
    """Yield arrays to write results to; check at the end that nothing around them was written."""
    around = [np.full(math.prod(shape) + 64, 77, dtype) for shape in shapes]
    yield [memory[32:-32].reshape(shape) for memory, shape in zip(around, shapes, strict=True)]
    assert {int(n) for memory in around for n in (*memory[:32], *memory[-32:])} == {77}


def geometry(size, resized, window, upside_down=False, mirrored=False):
    return np.array([[0, 0, *size, *resized, *window, upside_down, mirrored]], np.int64)


sides = st.integers(1, 40)
same = {"size": (21, 40), "resized": (21, 40), "name": "bilinear", "antialias": True}


@settings(max_examples=40)
@example(**same, channels=3, flips=0, levels=True)  # copied
@example(**same, channels=3, flips=2, levels=True)  # mirrored
@given(
    size=st.tuples(sides, sides), resized=st.tuples(sides, sides), channels=st.integers(1, 6),
    name=st.sampled_from(["bilinear", "bicubic"]), antialias=st.booleans(), flips=st.integers(0, 3),
    levels=st.booleans(),
)  # fmt: skip
def test_pixels_are_weighted_sums(size, resized, channels, name, antialias, flips, levels):
    rng = np.random.default_rng(size[0])
    image = rng.integers(0, 256, (*size, channels), np.uint8)
    image = image if levels else image.astype(np.float32)
    filter = {"bilinear": triangle, "bicubic": cubic}[name]
    rows, columns = (weights(n, m, filter, antialias) for n, m in zip(size, resized, strict=True))
    exact = np.einsum("ai,ijc,bj->abc", rows, image.astype(float), columns)
    y, x = resized[0] // 3, resized[1] // 3
    window = y, x, resized[0] - y, resized[1] - x
    exact = exact[y:, x:]
    exact = exact[::-1] if flips & 1 else exact
    exact = exact[:, ::-1] if flips & 2 else exact
    with rooms(exact.shape, dtype=image.dtype) as results:
        resample(
            [image], geometry(size, resized, window, flips & 1, flips >> 1), results, filter=name,
            antialias=antialias,
        )  # fmt: skip
    (result,) = results
    if levels:
        assert np.abs(result - np.clip(exact, 0, 255)).max() <= 0.5 + 1e-3
    else:
        np.testing.assert_allclose(result, exact, atol=2e-3)


@pytest.mark.parametrize(("length", "resized"), [(10, 4), (4, 10), (7, 7), (9, 3), (75, 33)])
def test_the_nearest_pixel(length, resized):
    image = np.arange(length, dtype=np.uint8).reshape(length, 1, 1)
    result = np.empty((resized, 1, 1), np.uint8)
    size = geometry((length, 1), (resized, 1), (0, 0, resized, 1))
    resample([image], size, [result], filter="nearest")
    exact = [(2 * j + 1) * length // (2 * resized) for j in range(resized)]
    np.testing.assert_array_equal(result[:, 0, 0], exact)


def test_levels_are_rounded_before_they_are_scaled():
    image = np.random.default_rng(0).integers(0, 256, (9, 13, 3), np.uint8)
    size = geometry((9, 13), (5, 6), (1, 1, 4, 4), mirrored=True)
    levels, floats = np.empty((4, 4, 3), np.uint8), np.empty((4, 4, 3), np.float32)
    scale, shift = np.float32([1, 2, 3]), np.float32([0.5, 0, -1])
    resample([image], size, [levels])
    resample([image], size, [floats], scale=scale, shift=shift)
    np.testing.assert_array_equal(floats, levels * scale + shift)


def test_a_part_of_an_image_is_resampled_like_the_whole():
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    part = np.ascontiguousarray(image[3:15, 4:21])
    inside = geometry((12, 17), (5, 40), (0, 0, 5, 40))
    outside = inside.copy()
    outside[:, :2] = 3, 4
    results = np.empty((3, 5, 40, 3), np.uint8)
    resample([part], inside, results[:1])
    resample([image], outside, results[1:2])
    resample([image[3:15, 4:21]], inside, results[2:])  # rows that lie apart
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


def test_threads_share_a_batch_of_different_images():
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (100 + 7 * i, 90, 3), np.uint8) for i in range(9)]
    sizes = np.concatenate(
        [geometry(image.shape[:2], (120, 120), (9, 9, 100, 100)) for image in images]
    )
    alone, shared = np.empty((2, 9, 100, 100, 3), np.uint8)
    with thread_budget(1):
        resample(images, sizes, alone)
    with thread_budget(3):
        resample(images, sizes, shared)
    np.testing.assert_array_equal(alone, shared)
    resample([], sizes[:0], [])


@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_each_image_has_its_own_matrix(channels, dtype):
    rng = np.random.default_rng(0)
    white = 255 if dtype == np.uint8 else 1
    images = [(rng.random((n, 11, channels)) * white).astype(dtype) for n in (4, 7)]
    matrices = rng.normal(0.3, 0.5, (2, channels, channels + 1)).astype(np.float32)
    matrices[..., channels] *= white
    with rooms(*(image.shape for image in images), dtype=dtype) as results:
        mix(images, matrices, results, white)
    for image, matrix, result in zip(images, matrices, results, strict=True):
        exact = np.clip(image @ matrix[:, :channels].T + matrix[:, channels], 0, white)
        atol = 0.5 + 1e-3 if dtype == np.uint8 else 1e-5
        np.testing.assert_allclose(result, exact, rtol=0, atol=atol)
    mix(images, matrices, images, white)  # in place
    np.testing.assert_array_equal(images[0], results[0])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_means_of_channels(channels, dtype):
    images = [
        np.random.default_rng(n).integers(0, 256, (n, 300, channels)).astype(dtype)
        for n in (200, 3)
    ]
    exact = [image.mean((0, 1), np.float64) for image in images]
    with thread_budget(2):
        np.testing.assert_allclose(channel_means(images), exact, rtol=1e-12)


MAPS = np.array(
    [
        [[1, 0, 0], [0, 1, 0]],
        [[0.9, 0.3, -4.2], [-0.2, 1.1, 3.3]],
        [[0, 1, 2], [1, 0, -3]],
        [[2.5, 0, 0.7], [0, 2.5, -10]],
    ],
    float,
)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_warp_agrees_with_scipy(channels, dtype):
    images = np.random.default_rng(0).integers(0, 256, (4, 23, 31, channels)).astype(dtype)
    fill = np.linspace(10, 200, channels)
    with thread_budget(2), rooms(*[(40, 37, channels)] * 4, dtype=dtype) as results:
        warp(list(images), MAPS, results, fill)
    i, j = np.indices((40, 37))
    for image, m, result in zip(images, MAPS, results, strict=True):
        places = [m[1, 0] * j + m[1, 1] * i + m[1, 2], m[0, 0] * j + m[0, 1] * i + m[0, 2]]
        for c in range(channels):
            plane = image[..., c].astype(float)
            # Beyond the edge is the fill, to which the last pixels fade.
            exact = ndimage.map_coordinates(plane, places, order=1, mode="grid-constant",
                                            cval=fill[c])  # fmt: skip
            atol = 0.5 + 1e-2 if dtype == np.uint8 else 1e-2
            np.testing.assert_allclose(result[..., c], exact, rtol=0, atol=atol)
