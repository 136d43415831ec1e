from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskdl.collective.parts import UNIT, join, rows_of, slice_of, split


@given(size=st.integers(0, 1000), cuts=st.lists(st.fractions(0, 1), max_size=9))
def test_parts_of_a_vector_cover_it_once(size: int, cuts: list[Fraction]) -> None:
    ends = sorted({Fraction(0), Fraction(1), *cuts})
    slices = [slice_of(span, size) for span in pairwise(ends)]
    covered = [i for s in slices for i in range(s.start, s.stop)]
    assert covered == list(range(size))
    assert all(s.start % UNIT == 0 or s.start == size for s in slices)


def test_one_slice_is_a_view_and_several_are_side_by_side() -> None:
    vector = np.arange(8.0, dtype=np.float32)
    assert join(vector, [slice(2, 5)]).base is vector
    values = join(vector, [slice(6, 8), slice(0, 1)])
    np.testing.assert_array_equal(values, [6, 7, 0])
    other = np.zeros(8, np.float32)
    split(values, other, [slice(6, 8), slice(0, 1)])
    np.testing.assert_array_equal(other, [0, 0, 0, 0, 0, 0, 6, 7])


def test_rows_of_a_table_are_shared_out_like_numbers() -> None:
    assert [rows_of((Fraction(1, 5), Fraction(4, 5)), n) for n in (5, 3)] == [(1, 4), (0, 2)]
