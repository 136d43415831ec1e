"""Kernels of reductions, and of arrays that are joined."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.joining import InTurns, side_by_side
from daskdl.kernels.vectors.reduce import BLOCK, squares_between, sum_over


@given(shape=hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4), data=st.data())
def test_it_is_numpys_sum(shape, data):
    axes = data.draw(st.sets(st.sampled_from(range(len(shape)))) if shape else st.just(set()))
    x = np.random.default_rng(0).normal(size=shape)
    expected = x.sum(axis=tuple(axes))
    result = sum_over(x, tuple(axes))
    assert result.shape == expected.shape
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 70_001), (70_001, 3), (2, 130, 5001), (40, 10, 40, 10)])
def test_threads_do_not_change_the_bits(shape):
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    for n in range(1, len(shape) + 1):
        for axes in combinations(range(len(shape)), n):
            results = []
            for threads in (1, 2, 3):
                with thread_budget(threads):
                    results.append(sum_over(x, axes))
            for other in results[1:]:
                np.testing.assert_array_equal(other, results[0])
            lost = np.abs(results[0] - x.sum(axes, np.float64)) / np.abs(x).sum(axes, np.float64)
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
    results = []
    for threads in (1, 2, 3):
        with thread_budget(threads):
            results.append(squares_between(x, starts, stops).sum())
    assert len(set(results)) == 1
    assert results[0] == pytest.approx(np.sum(x.astype(float) ** 2), rel=1e-13)


def test_rows_lie_side_by_side():
    rng = np.random.default_rng(0)
    parts = [rng.random((2, 3, 5, n), np.float32) for n in (1, 17, 0, 4)]
    np.testing.assert_array_equal(side_by_side(*parts), np.concatenate(parts, -1))


def test_numbers_of_two_arrays_come_in_turns():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 2, 3, 5, 37), np.float32)
    for first, width in ((0, 37), (3, 33), (36, 1), (4, 0)):
        columns = slice(first, first + width)
        expected = np.stack([a[..., columns], b[..., columns]], -1).reshape(2, 3, 5, 2 * width)
        np.testing.assert_array_equal(InTurns(first, width)(a, b), expected)
