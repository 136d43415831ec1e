"""Rows of a table against the array that they stand for."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.rows import Rows
from tests.daskdl.gradients import same_bits

N = 12


def random_rows(seed: int, n: int, rows: int = N, width: int = 3) -> Rows:
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, rows, n)
    return Rows.of(ids, rng.standard_normal((n, width), np.float32), rows)


@settings(max_examples=30)
@given(n=st.integers(0, 20), m=st.integers(0, 20))
def test_a_sum_is_that_of_the_arrays(n: int, m: int) -> None:
    a, b = random_rows(1, n), random_rows(2, m)
    total = a + b
    np.testing.assert_array_equal(total.dense(), a.dense() + b.dense())
    np.testing.assert_array_equal(total.ids, np.union1d(a.ids, b.ids))
    assert total.nbytes == total.ids.nbytes + total.values.nbytes


def test_threads_do_not_change_a_sum() -> None:
    a, b = random_rows(1, 4000, 5000, 64), random_rows(2, 4000, 5000, 64)
    same_bits(lambda: (a + b).values)


def test_products_and_squares_of_rows() -> None:
    rows = random_rows(3, 9)
    np.testing.assert_array_equal(rows.times(3).dense(), rows.dense() * np.float32(3))
    assert rows.times(7).values.dtype == np.float32
    np.testing.assert_allclose(rows.squares(), np.square(rows.values, dtype=float).sum(1))


@given(cut=st.integers(0, N))
@settings(max_examples=13)
def test_parts_are_joined_again(cut: int) -> None:
    rows = random_rows(4, 8)
    left, right = rows.part(0, cut), rows.part(cut, N)
    assert (left.ids < cut).all()
    assert (right.ids >= cut).all()
    whole = Rows.joined([left, right])
    np.testing.assert_array_equal(whole.ids, rows.ids)
    np.testing.assert_array_equal(whole.dense(), rows.dense())


def test_none_and_all() -> None:
    dense = random_rows(5, 9).dense()
    np.testing.assert_array_equal(Rows.all_of(dense).dense(), dense)
    none = Rows.none_of((N, 3))
    assert not none.dense().any()
    np.testing.assert_array_equal((none + random_rows(5, 9)).dense(), dense)
