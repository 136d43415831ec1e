"""Reductions over cells: all widths of blocks, tags of every size, ties, NaN, no cells."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.pooling.cells import largest, sum_where
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty

#: With whole and with partial blocks of vectors, and with parts of a vector.
CHANNELS = (1, 7, 8, 45, 64, 203)


@jit
def _largest(x, y, tags, table, channels):
    largest(x, y, tags, table, table.shape[0], channels, channels, 0)


@jit
def _sum(x, y, tags, table, channels, weight, past):
    sum_where(x, y, tags, table, table.shape[0], channels, channels, 0, weight, past)


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
