"""Means of a user's function, and exact sums."""

from __future__ import annotations

import doctest
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import ShapeError
from daskdl.metrics import Mean, exactsum
from daskdl.metrics import mean as module
from daskdl.metrics.exactsum import exact_sum, mean_of
from tests.daskdl.cuts import check_cuts


@given(data=st.data(), n=st.integers(1, 30))
def test_it_is_the_mean_for_any_cut(data, n):
    a, b = np.random.default_rng(n).normal(size=(2, n, 3)).astype("f4")
    found = check_cuts(Mean(lambda p, y: np.abs(p - y).max(1)), a, b, data)
    assert found == pytest.approx(np.abs(a - b).max(1).astype("f8").mean(), rel=1e-12)


def test_it_has_to_be_of_each_sample():
    with pytest.raises(
        ShapeError, match=r"Mean: expected mean to .* 4 samples, found float64 \(\)"
    ):
        Mean(mean)(np.zeros(4), np.zeros(4))


def mean(prediction, target):
    return np.mean(prediction - target)


def test_better_is_what_it_was_told():
    assert not Mean(np.subtract).higher_is_better
    assert Mean(np.subtract, higher_is_better=True).higher_is_better


def test_the_docstrings_example():
    assert doctest.testmod(module).failed == 0


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(values=st.lists(FINITE, min_size=1, max_size=30), n=st.integers(1, 1000))
def test_the_mean_is_the_nearest_float(values, n):
    exact = sum(Fraction(v) for v in values) / n
    try:
        expected = float(exact)
    except OverflowError:
        expected = math.copysign(math.inf, exact)
    assert mean_of(exact_sum(values), n) == expected


@given(values=st.lists(FINITE, max_size=20), at=st.integers(0, 20))
def test_parts_add_up(values, at):
    whole = exact_sum(values)
    parts = exact_sum(values[at:]) + exact_sum(values[:at])
    assert mean_of(parts, 7) == mean_of(whole, 7)


def test_extremes_and_numbers_that_cancel():
    values = [1e308, 5e-324, -1e308, 1.0, -1.0]
    assert mean_of(exact_sum(values), 1) == 5e-324
    assert mean_of(exact_sum([1e308] * 4), 2) == math.inf
    assert mean_of(exact_sum([1e308] * 4), 4) == 1e308


def test_more_than_a_block_and_arrays_that_are_added_often():
    values = np.random.default_rng(0).normal(size=exactsum.BLOCK + 10)
    total = exact_sum(values)
    assert mean_of(total, 1) == math.fsum(values)
    assert mean_of(total * 1000, 1000) == math.fsum(values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, np.inf], np.inf),
        ([-np.inf, 3.0], -np.inf),
        ([np.inf, -np.inf], np.nan),
        ([np.nan, 1.0], np.nan),
        ([np.nan, np.inf], np.nan),
    ],
)
def test_what_is_not_finite(values, expected):
    np.testing.assert_equal(mean_of(exact_sum(values), 2), expected)


def test_nothing():
    assert mean_of(exact_sum([]), 3) == 0
    assert math.isnan(mean_of(exact_sum([]), 0))
