"""Vectors of four numbers: loaded wherever they begin, weighted and added."""

from __future__ import annotations

import numpy as np
import pytest
from numba import carray

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
from daskdl.kernels.runtime.jit import jit


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
