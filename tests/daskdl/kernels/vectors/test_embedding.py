"""Rows of a table and their gradient: any ids, their duplicates summed in order."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl.errors import ShapeError
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors import embedding
from daskdl.kernels.vectors.embedding import add_rows, add_to, gather, row_gradient
from daskdl.kernels.vectors.reduce import BLOCK, squares_between, sum_over
from tests.daskdl.gradients import same_bits


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8", ">i4"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (2, 3)])
def test_gather(dtype, shape):
    rng = np.random.default_rng(0)
    table = rng.random((90, 5), np.float32)
    ids = rng.integers(0, 90, shape).astype(dtype)
    np.testing.assert_array_equal(gather(table, ids), table[ids])


def test_gather_takes_any_layout():
    table = np.random.default_rng(0).random((9, 12))
    ids = np.arange(18).reshape(6, 3)[::-2] % 9
    for t in (table[:, ::2], np.asfortranarray(table), table[::-1]):
        t.flags.writeable = ids.flags.writeable = False
        np.testing.assert_array_equal(gather(t, ids), t[ids])


@pytest.mark.parametrize(
    ("ids", "missing"),
    [([0, -1], -1), ([3, 4, 5], 4), (np.array([1, 2**64 - 1], np.uint64), 2**64 - 1)],
)
def test_an_id_that_is_not_in_the_table_is_named(ids, missing):
    sentence = f"expected ids from 0 to 3, the rows of the table, found {missing}"
    ids = np.asarray(ids)
    with pytest.raises(ShapeError, match=re.escape(sentence)):
        gather(np.zeros((4, 2)), ids)
    with pytest.raises(ShapeError, match=re.escape(sentence)):
        row_gradient(ids, np.zeros((len(ids), 2)), 4)


def test_an_empty_table_has_no_ids():
    with pytest.raises(ShapeError, match="found none for id 0"):
        gather(np.zeros((0, 2)), np.array([0]))
    assert gather(np.zeros((0, 2)), np.array([], int)).shape == (0, 2)


@given(
    n=st.integers(0, 50),
    n_rows=st.sampled_from([1, 3, 2**11, 2**11 + 1, 2**22 + 5]),
    width=st.integers(0, 5),
)
def test_row_gradient_is_numpys(n, n_rows, width):
    rng = np.random.default_rng([n, n_rows, width])
    ids = np.minimum(rng.zipf(1.2, n) - 1, n_rows - 1)
    d = rng.normal(size=(n, width)).astype("f4")
    unique, rows = row_gradient(ids, d, n_rows)
    expected = np.unique(ids)
    np.testing.assert_array_equal(unique, expected)
    sums = np.zeros((len(expected), width), "f4")
    np.add.at(sums, np.searchsorted(expected, ids), d)  # one by one, in order: the same bits
    np.testing.assert_array_equal(rows, sums)


def test_threads_do_not_change_the_bits():
    rng = np.random.default_rng(0)
    ids, d = rng.zipf(1.3, 20_000) % 3000, rng.standard_normal((20_000, 64), np.float32)
    same_bits(lambda: row_gradient(ids, d, 3000))


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_are_added_to_a_table(threads):
    rng = np.random.default_rng(0)
    table, ids = rng.normal(size=(5000, 33)).astype("f4"), np.arange(1, 5000, 2)
    rows = rng.normal(size=(len(ids), 33))
    expected = table.copy()
    expected[ids] += rows.astype("f4")
    with thread_budget(threads):
        add_to(table, ids, rows)
        add_to(table, ids[:0], rows[:0])
    np.testing.assert_array_equal(table, expected)


@given(n=st.integers(0, 9), m=st.integers(0, 9))
def test_rows_are_added_where_both_have_them(n, m):
    rng = np.random.default_rng([n, m])
    (ids, rows), (others, more) = (
        row_gradient(rng.integers(0, 7, k), rng.standard_normal((k, 2), np.float32), 7)
        for k in (n, m)
    )
    unique, total = add_rows(ids, rows, others, more)
    np.testing.assert_array_equal(unique, np.union1d(ids, others))
    sums = np.zeros((7, 2), "f4")
    sums[ids] += rows
    sums[others] += more
    np.testing.assert_array_equal(total, sums[unique])


@given(shape=hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4), data=st.data())
def test_sum_over_is_numpys_sum(shape, data):
    axes = data.draw(st.sets(st.sampled_from(range(len(shape)))) if shape else st.just(set()))
    x = np.random.default_rng(0).normal(size=shape)
    expected = x.sum(axis=tuple(axes))
    result = sum_over(x, tuple(axes))
    assert result.shape == expected.shape
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 70_001), (70_001, 3), (2, 130, 5001), (40, 10, 40, 10)])
def test_threads_do_not_change_the_bits_of_reduce(shape):
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    for n in range(1, len(shape) + 1):
        for axes in combinations(range(len(shape)), n):
            sums = same_bits(lambda axes=axes: sum_over(x, axes), 1, 2, 3)
            lost = np.abs(sums - x.sum(axes, np.float64)) / np.abs(x).sum(axes, np.float64)
            assert lost.max() < 3e-7


def test_long_sums_lose_no_more_than_short_ones():
    x = np.full((1 << 22, 2), 0.1, np.float32)
    for axes in ((0, 1), (0,)):
        np.testing.assert_allclose(sum_over(x, axes), x.sum(axes, np.float64), rtol=3e-7)


def test_any_layout_is_right():
    x = np.arange(24, dtype="f4").reshape(4, 6)
    for view in (x.T, x[::-1, ::2], np.asfortranarray(x)):
        np.testing.assert_array_equal(sum_over(view, (0,)), view.sum(0))


def test_nan_and_infinity_show():
    x = np.ones((3, 50), "f4")
    x[0, 7], x[1, 8] = np.nan, np.inf
    sums = sum_over(x, (1,))
    assert np.isnan(sums[0])
    assert sums[1] == np.inf
    assert sums[2] == 50


@pytest.mark.parametrize("n", [0, 1, 32_769, 300_001])
def test_sum_of_squares_by_blocks(n):
    x = np.random.default_rng(0).standard_normal(n, np.float32)
    starts = np.arange(0, n, BLOCK)
    stops = np.minimum(starts + BLOCK, n)
    total = same_bits(lambda: squares_between(x, starts, stops), 1, 2, 3).sum()
    assert total == pytest.approx(np.sum(x.astype(float) ** 2), rel=1e-13)


def test_rows_lie_side_by_side():
    rng = np.random.default_rng(0)
    parts = [rng.random((2, 3, 5, n), np.float32) for n in (1, 17, 0, 4)]
    np.testing.assert_array_equal(embedding.side_by_side(*parts), np.concatenate(parts, -1))


def test_numbers_of_two_arrays_come_in_turns():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 2, 3, 5, 37), np.float32)
    for first, width in ((0, 37), (3, 33), (36, 1), (4, 0)):
        columns = slice(first, first + width)
        expected = np.stack([a[..., columns], b[..., columns]], -1).reshape(2, 3, 5, 2 * width)
        np.testing.assert_array_equal(embedding.InTurns(first, width)(a, b), expected)
