from __future__ import annotations

import sys
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskdl.collective.parts import UNIT, cut, packed, put_together, slice_of, unpack
from daskdl.collective.plan import plans


@given(size=st.integers(0, 1000), cuts=st.lists(st.fractions(0, 1), max_size=9))
def test_parts_of_a_vector_cover_it_once(size: int, cuts: list[Fraction]) -> None:
    ends = sorted({Fraction(0), Fraction(1), *cuts})
    slices = [slice_of(span, size) for span in pairwise(ends)]
    covered = [i for s in slices for i in range(s.start, s.stop)]
    assert covered == list(range(size))
    assert all(s.start % UNIT == 0 or s.start == size for s in slices)


def test_one_slice_is_a_view_and_several_are_side_by_side() -> None:
    vector = np.arange(8.0, dtype=np.float32)
    assert packed(vector, [slice(2, 5)]).base is vector
    values = packed(vector, [slice(6, 8), slice(0, 1)])
    np.testing.assert_array_equal(values, [6, 7, 0])
    other = np.zeros(8, np.float32)
    unpack(values, other, [slice(6, 8), slice(0, 1)])
    np.testing.assert_array_equal(other, [0, 0, 0, 0, 0, 0, 6, 7])


@given(size=st.integers(1, 400), members=st.integers(1, 7))
def test_a_state_is_cut_and_put_together(size: int, members: int) -> None:
    weights = np.arange(size, dtype=np.float32)
    slots = {"mean": weights + 1000, "square": weights + 2000}
    slices = [[slice_of(span, size) for span in plan.owned] for plan in plans(list(range(members)))]
    parts = [cut(weights, slots, own) for own in slices]
    assert sum(sys.getsizeof(p) for p in parts) >= 3 * weights.nbytes
    found, state = put_together(parts, slices, size)
    np.testing.assert_array_equal(found, weights)
    assert state.keys() == slots.keys()
    for name, slot in slots.items():
        np.testing.assert_array_equal(state[name], slot)
