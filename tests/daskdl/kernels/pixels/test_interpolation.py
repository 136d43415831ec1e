"""Kernels of pixels: interpolation, warps and colours."""

from __future__ import annotations

import numpy as np
import pytest
from numba import carray
from scipy import ndimage

from daskdl.kernels.pixels.colour import channel_means, mix
from daskdl.kernels.pixels.interpolation import (
    PIXELS,
    VECTOR,
    blend_levels,
    copy,
    mirror_levels,
    mix_levels,
    pointer,
    weigh,
    weigh_pairs,
)
from daskdl.kernels.pixels.warp import warp
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.threads import thread_budget


@jit
def _weigh(source, place, step, weights, first, count, result, at):
    weigh(source, place, step, weights, first, count, result, at)


@jit
def _read(address, n, like):
    return carray(pointer(address, like), (n,)).copy()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_weighted_vectors_are_added(count):
    rng = np.random.default_rng(0)
    source, weights = rng.random(30, np.float32), rng.random(8, np.float32)
    result = np.full(10, -1, np.float32)
    _weigh(source, 5, 3, weights, 2, count, result, 4)
    exact = sum(
        (weights[2 + k] * source[5 + 3 * k : 5 + 3 * k + VECTOR] for k in range(count)),
        np.zeros(VECTOR),
    )
    np.testing.assert_allclose(result[4:8], exact, rtol=1e-6)
    assert (result[[0, 1, 2, 3, 8, 9]] == -1).all()


def test_memory_is_read_at_its_address():
    numbers = np.arange(12, dtype=np.uint8)
    np.testing.assert_array_equal(_read(numbers.ctypes.data + 3, 4, np.uint8(0)), [3, 4, 5, 6])


@jit
def _weigh_pairs(source, place, weights, first, pairs, result, at):
    weigh_pairs(source, place, weights, first, pairs, result, at)


def test_pairs_of_pixels_are_added():
    rng = np.random.default_rng(0)
    source, taps = rng.random(30, np.float32), rng.random(4, np.float32)
    weights = np.concatenate([[*[a] * 3, *[b] * 3, 0, 0] for a, b in taps.reshape(2, 2)])
    result = np.full(10, -1, np.float32)
    _weigh_pairs(source, 5, weights.astype(np.float32), 0, 2, result, 4)
    exact = taps @ source[5:17].reshape(4, 3)
    np.testing.assert_allclose(result[4:7], exact, rtol=1e-6)
    assert (result[[0, 1, 2, 3, 8, 9]] == -1).all()


@jit
def _blend(source, weights, result):
    blend_levels(source, np.uint64(3), np.uint64(30), weights, result, np.uint64(6))


def test_a_pixel_is_blended_of_four():
    source = np.random.default_rng(0).integers(0, 256, 60).astype(np.uint8)
    result, weights = np.zeros(12, np.uint8), np.float32([0.5, 0.25, 0.125, 0.125, 0.5])
    _blend(source, tuple(weights), result)
    pixels = np.stack([source[p : p + 3] for p in (3, 6, 30, 33)])
    np.testing.assert_array_equal(result[6:9], (weights[:4] @ pixels + 0.5).astype(np.uint8))
    assert not result[[*range(6), 10, 11]].any()


@jit
def _levels(source, result, mixture, most):
    copy(source, np.uint64(1), result, np.uint64(2), np.uint64(5))
    mirror_levels(source, np.uint64(3), result, np.uint64(10))
    mix_levels(source, np.uint64(3), result, np.uint64(60), mixture, most)


def test_levels_are_copied_mirrored_and_mixed():
    source = np.random.default_rng(0).integers(0, 256, 60).astype(np.uint8)
    result = np.zeros(110, np.uint8)
    matrix = np.float32([[0.5, 0.25, 0, 3], [-1, 0, 0, 200], [1, 1, 1, 0]])
    _levels(source, result, tuple(matrix.ravel()), np.float32(255))
    pixels = source[3 : 3 + 3 * PIXELS].reshape(PIXELS, 3)
    np.testing.assert_array_equal(result[2:7], source[1:6])
    np.testing.assert_array_equal(result[10:58].reshape(-1, 3), pixels[::-1])
    exact = np.clip(pixels @ matrix[:, :3].T + matrix[:, 3], 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(result[60:108].reshape(-1, 3), exact)
    assert not result[[0, 1, 7, 8, 9, 58, 59, 108, 109]].any()


@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_each_image_has_its_own_matrix(channels, dtype):
    rng = np.random.default_rng(0)
    white = 255 if dtype == np.uint8 else 1
    images = [(rng.random((n, 11, channels)) * white).astype(dtype) for n in (4, 7)]
    matrices = rng.normal(0.3, 0.5, (2, channels, channels + 1)).astype(np.float32)
    matrices[..., channels] *= white
    results = [np.empty_like(image) for image in images]
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
def test_it_is_scipys(channels, dtype):
    images = np.random.default_rng(0).integers(0, 256, (4, 23, 31, channels)).astype(dtype)
    fill = np.linspace(10, 200, channels)
    results = np.empty((4, 40, 37, channels), dtype)
    with thread_budget(2):
        warp(list(images), MAPS, list(results), fill)
    i, j = np.indices((40, 37))
    for image, m, result in zip(images, MAPS, results, strict=True):
        places = [m[1, 0] * j + m[1, 1] * i + m[1, 2], m[0, 0] * j + m[0, 1] * i + m[0, 2]]
        for c in range(channels):
            plane = image[..., c].astype(float)
            # Beyond the edge it is the fill's, to which the last pixels fade.
            exact = ndimage.map_coordinates(plane, places, order=1, mode="grid-constant",
                                            cval=fill[c])  # fmt: skip
            atol = 0.5 + 1e-2 if dtype == np.uint8 else 1e-2
            np.testing.assert_allclose(result[..., c], exact, rtol=0, atol=atol)
