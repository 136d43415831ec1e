"""Kernels of pooling over windows and regions."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.pooling import pooling as kernel
from daskdl.kernels.pooling import regions as bins
from daskdl.kernels.pooling.pooling import Windows
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.layouts import layouts


@pytest.mark.parametrize(
    ("windows", "size"),
    [
        (Windows((3, 3), (2, 2), (1, 1, 1, 1)), (4, 5)),
        (Windows((3, 3), (2, 2), (0, 0, 0, 0)), (3, 4)),
        (Windows((2, 2), (2, 2), (0, 0, 0, 0), True), (4, 5)),
        (Windows((2, 2), (2, 2), (1, 1, 0, 0), True), (4, 5)),  # nor a fifth
        (Windows((1, 1), (3, 3), (0, 0, 0, 0), True), (3, 3)),  # a fourth would begin outside
        (Windows((7, 9), (1, 1)), (1, 1)),
        (Windows((8, 9), (1, 1)), (0, 1)),
    ],
)
def test_size(windows, size):
    assert windows.size(7, 9) == size


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "dtype"), [(15, np.uint8), (16, np.uint8), (17, np.uint16), (260, np.uint32)]
)
def test_places_are_in_the_smallest_type_that_serves(side, dtype):
    x = np.zeros((1, side, side, 3), "f4")
    x[0, -1, -1, 0] = x[0, -1, -2, 1] = x[0, 0, 1, 2] = 1
    windows = Windows((side, side), (1, 1))
    y, places = kernel.maxima(x, windows)
    assert places.dtype == dtype
    np.testing.assert_array_equal(places[0, 0, 0], [side**2 - 1, side**2 - 2, 1])
    np.testing.assert_array_equal(kernel.maxima_gradient(y, places, windows, side, side), x)


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_of_threads_join(threads):
    x = np.random.default_rng(0).normal(size=(5, 31, 29, 17)).astype("f4")
    windows = Windows((3, 2), (2, 1), (1, 0, 1, 1))
    with thread_budget(threads):
        y, places = kernel.maxima(x, windows)
        dx = kernel.maxima_gradient(y, places, windows, 31, 29)
        mean = kernel.means(x, windows, True)
    padded = np.pad(x, ((0, 0), (1, 0), (1, 1), (0, 0)), constant_values=-np.inf)
    cells = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (1, 2))[:, ::2]
    np.testing.assert_array_equal(y, cells.max((-2, -1)))
    np.testing.assert_allclose(dx.sum(), y.sum(), rtol=1e-4)
    zeros = np.where(np.isinf(cells), 0, cells)
    np.testing.assert_allclose(mean, zeros.mean((-2, -1)), atol=1e-5)


def test_first_of_equals_and_last_nan():
    x = np.zeros((1, 2, 3, 3), "f4")
    x[0, :, :, 1] = -np.inf
    x[0, 0, 1, 2] = x[0, 1, 0, 2] = np.nan
    y, places = kernel.maxima(x, Windows((2, 3), (1, 1)))
    np.testing.assert_array_equal(places[0, 0, 0], [0, 0, 3])
    np.testing.assert_array_equal(y[0, 0, 0], [0, -np.inf, np.nan])


@pytest.mark.parametrize("size", [(16, 16), (17, 16), (3, 300)])
def test_global_means_of_small_and_large_images(size):
    x = np.random.default_rng(0).normal(5, 1, (2, *size, 11)).astype("f4")
    y = kernel.global_means(x)
    assert y.shape == (2, 11)
    np.testing.assert_allclose(y, x.mean((1, 2), np.float64), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_maxima_and_their_gradient(dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, (2, 5, 6, 3)).astype(dtype)
    images = np.array([1, 0, 1])
    rows = np.sort(rng.integers(0, 6, (3, 2, 2)), -1)
    columns = np.sort(rng.integers(0, 7, (3, 4, 2)), -1)
    y, places = bins.maxima(x, images, rows, columns)
    dy, expected = rng.normal(size=y.shape).astype(dtype), np.zeros_like(x)
    for r, i, j in np.ndindex(3, 2, 4):
        (top, below), (left, right) = rows[r, i], columns[r, j]
        box = x[images[r], top:below, left:right].reshape(-1, 3)
        if not len(box):
            assert not y[r, i, j].any()
            assert (places[r, i, j] == -1).all()
            continue
        np.testing.assert_array_equal(y[r, i, j], box.max(0))
        for c, k in enumerate(box.argmax(0)):  # the first of equals
            row, column = divmod(k, right - left)
            expected[images[r], top + row, left + column, c] += dy[r, i, j, c]
    np.testing.assert_allclose(bins.gradient(dy, places, x.shape), expected, atol=1e-6)
    for other in layouts(x):
        np.testing.assert_array_equal(bins.maxima(other, images, rows, columns)[0], y)


def test_nan_is_seen():
    x = np.zeros((1, 2, 2, 1), "f4")
    x[0, 0, 1] = np.nan
    box = np.array([[[0, 2]]])
    assert np.isnan(bins.maxima(x, np.array([0]), box, box)[0]).all()
