"""Kernels of pooling over windows and regions."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.int8.scale import Scale, to_floats
from daskdl.kernels.pooling import pooling as kernel
from daskdl.kernels.pooling import regions as bins
from daskdl.kernels.pooling.cells import largest, sum_where
from daskdl.kernels.pooling.pooling import Windows
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.gradients import layouts


@pytest.mark.parametrize(
    ("windows", "size"),
    [
        (Windows((3, 3), (2, 2), (1, 1, 1, 1)), (4, 5)),
        (Windows((3, 3), (2, 2), (0, 0, 0, 0)), (3, 4)),
        (Windows((2, 2), (2, 2), (0, 0, 0, 0), True), (4, 5)),
        (Windows((2, 2), (2, 2), (1, 1, 0, 0), True), (4, 5)),  # a fifth row would begin outside
        (Windows((1, 1), (3, 3), (0, 0, 0, 0), True), (3, 3)),  # a fourth row would begin outside
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


#: With whole and with partial blocks of vectors, and with parts of a vector.
CHANNELS = (1, 7, 8, 45, 64, 203)


@jit
def _largest(x, y, tags, table, channels):
    largest(x, y, tags, table, table.shape[0], channels, channels, 0)


@jit
def _sum(x, y, tags, table, channels, weight, past):
    sum_where(x, y, tags, table, table.shape[0], channels, channels, 0, weight, past, None)


def _table(cells, channels, tags):
    return np.array([np.multiply(cells, channels), tags], np.int64).T.copy()


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize(
    ("dtype", "kind"), [("f4", "u1"), ("f4", "u2"), ("f8", "u1"), ("f4", "u4")]
)
def test_largest(channels, dtype, kind):
    rng = np.random.default_rng(channels)
    x = rng.integers(-3, 4, (6, channels)).astype(dtype)  # with equals
    x[2, ::5] = x[4, ::5] = x[5, ::3] = np.nan
    x[1:, 1::7] = -np.inf
    y, tags = np.full(channels + 16, 77, dtype), np.full(channels + 16, 77, kind)
    cells, names = [0, 3, 1, 4], [11, 5, 9, 200]
    _largest(x, y, tags, _table(cells, channels, names), channels)
    taken = x[1:][cells]  # ``source`` is the second row
    last_nan = len(cells) - 1 - np.argmax(np.isnan(taken[::-1]), 0)
    first = np.argmax(np.where(np.isnan(taken), -np.inf, taken), 0)
    where = np.where(np.isnan(taken).any(0), last_nan, first)
    np.testing.assert_array_equal(y[:channels], np.take_along_axis(taken, where[None], 0)[0])
    np.testing.assert_array_equal(tags[:channels], np.array(names)[where])
    assert {*y[channels:], *tags[channels:]} == {77}  # nothing behind is touched


@pytest.mark.slow
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize(
    ("dtype", "kind"), [("f4", "u1"), ("f4", "u2"), ("f8", "u1"), ("f4", None)]
)
@pytest.mark.parametrize("cells", [[4, 0, 2], [3], []])
def test_sum_where(channels, dtype, kind, cells):
    rng = np.random.default_rng(channels)
    x = rng.normal(size=(6, channels)).astype(dtype)
    tags = None if kind is None else rng.integers(0, 3, x.shape).astype(kind)
    y, wanted = np.full(channels + 16, 77, dtype), [1, 2, 0][: len(cells)]
    _sum(x, y, tags, _table(cells, channels, wanted), channels, y.dtype.type(0.5), False)
    expected = sum(
        (x[1 + c] * (1 if tags is None else tags[1 + c] == t))
        for c, t in zip(cells, wanted, strict=True)
    )
    np.testing.assert_allclose(y[:channels], expected * np.full(channels, 0.5), 1e-6, 1e-6)
    assert {*y[channels:]} == {77}  # nothing behind is touched


def test_infinite_numbers_of_other_tags_are_left_out():
    x, tags = np.array([[0, np.inf, np.nan, 3]], "f4"), np.array([[1, 0, 0, 1]], "u1")
    y = np.empty(4, "f4")
    _sum(np.concatenate([x, x]), y, np.concatenate([tags, tags]), _table([0], 4, [1]), 4,
         np.float32(1), False)  # fmt: skip
    np.testing.assert_array_equal(y, [0, 0, 0, 3])


def test_past_the_caches():
    channels = 328
    x, y = np.ones((3, channels), "f4"), empty(1 << 19, "f4")[:channels]
    _sum(x, y, None, _table([0, 1], channels, [0, 0]), channels, np.float32(3), True)
    np.testing.assert_array_equal(y, 6)


@pytest.mark.parametrize("size", [(7, 7), (20, 30)], ids=["one sum", "sums of rows"])
def test_maxima_and_means_of_bytes_are_those_of_their_numbers(size):
    scale = Scale(float(np.float32(0.021)), 90)
    x = np.random.default_rng(0).integers(0, 256, (2, *size, 45), np.uint8)
    floats, windows = to_floats(x, *scale), Windows((3, 2), (2, 1), (1, 0, 1, 1))
    largest_bytes = kernel.maxima_alone(x, windows)
    expected = kernel.maxima_alone(floats, windows)
    np.testing.assert_array_equal(to_floats(largest_bytes, *scale), expected)
    for with_pad in (False, True):
        expected = kernel.means(floats, windows, with_pad)
        np.testing.assert_array_equal(kernel.means(x, windows, with_pad, scale), expected)
    np.testing.assert_array_equal(kernel.global_means(x, scale), kernel.global_means(floats))
