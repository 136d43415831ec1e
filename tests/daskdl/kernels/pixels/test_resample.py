"""Resampling against matrices of weights, in whole batches and by several threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.kernels.pixels.resample import resample
from daskdl.kernels.runtime.threads import thread_budget


def triangle(x):
    return np.maximum(0, 1 - np.abs(x))


def cubic(x):
    x = np.abs(x)
    near, far = (1.5 * x - 2.5) * x * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def weights(length, resized, filter, antialias):
    """Return the weights (resized, length) of pixels, and of those that go on beyond the edge."""
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


def geometry(size, resized, window, upside_down=False, mirrored=False):
    return np.array([[0, 0, *size, *resized, *window, upside_down, mirrored]], np.int64)


sides = st.integers(1, 40)


@settings(max_examples=40)
@given(
    size=st.tuples(sides, sides), resized=st.tuples(sides, sides), channels=st.integers(1, 6),
    name=st.sampled_from(["bilinear", "bicubic"]), antialias=st.booleans(), flips=st.integers(0, 3),
    levels=st.booleans(),
)  # fmt: skip
def test_it_is_a_product_with_weights(size, resized, channels, name, antialias, flips, levels):
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
    result = np.empty(exact.shape, image.dtype)
    resample(
        [image], geometry(size, resized, window, flips & 1, flips >> 1), [result], filter=name,
        antialias=antialias,
    )  # fmt: skip
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


def test_a_part_of_the_source_is_all_there_is():
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
