"""Multiples of a vector: numpy's bits, and whether all numbers were finite."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.multiples import times

SIZES = [0, 7, 40_000, (1 << 20) + 3]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", SIZES)
def test_they_are_numpys(n, threads):
    x = np.random.default_rng(n).normal(size=n).astype(np.float32)
    kept, out = x.copy(), empty(n, np.float32)
    with thread_budget(threads):
        assert times(x, 7, out)
    np.testing.assert_array_equal(out, x * np.float32(7))
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", SIZES[1:])
def test_one_number_that_is_not_finite_is_found_wherever_it_is(n, value, threads):
    x, out = np.ones(n, np.float32), empty(n, np.float32)
    for place in (0, n // 2, n - 1):
        x[place] = value
        with thread_budget(threads):
            assert not times(x, 7, out)
        x[place] = 1


def test_finite_numbers_are_so_however_large_or_small():
    largest, smallest = np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal
    x = np.array([largest, -largest, smallest, 0, -0.0], np.float32)
    assert times(x, 7, np.empty_like(x))  # though 7 times the largest is not


def test_it_writes_to_a_part_of_memory():
    out = np.zeros(60_001, np.float32)
    with thread_budget(2):
        assert times(np.ones(60_000, np.float32), 3, out[1:])
    assert out[0] == 0
    assert (out[1:] == 3).all()
