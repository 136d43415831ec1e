"""Ranges: which kind each number of a vector is of, also of a vector of slices."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskdl.optim.ranges import Ranges

ranges = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=8).map(
    lambda parts: Ranges(
        tuple(np.cumsum([n for n, _ in parts], dtype=int).tolist()), tuple(k for _, k in parts)
    )
)


def spelled(ranges: Ranges) -> np.ndarray:
    """Return the kind of each number."""
    kinds = np.full(ranges.size, -1)
    for here, kind in ranges:
        kinds[here] = kind
    return kinds


@given(ranges=ranges)
def test_joined_says_the_same_in_as_few_ranges_as_can_be(ranges):
    joined = ranges.joined()
    np.testing.assert_array_equal(spelled(joined), spelled(ranges))
    assert len(joined.kinds) == len(joined.stops) == len({0, *joined.stops}) - 1
    assert all(a != b for a, b in pairwise(joined.kinds))


@given(ranges=ranges, points=st.lists(st.integers(0, 60)))
def test_part_has_the_kinds_of_its_slices(ranges, points):
    stops = sorted({0, *(min(p, ranges.size) for p in points), ranges.size})
    slices = [slice(a, b) for a, b in pairwise(stops)][::2]
    expected = [spelled(ranges)[s] for s in slices]
    found = spelled(ranges.part(slices))
    np.testing.assert_array_equal(found, np.concatenate([[], *expected]))


def test_nothing_has_no_ranges():
    assert Ranges((), ()).size == 0
    stops, kinds = Ranges((2, 3), (0, 1)).arrays
    assert stops.tolist() == [2, 3]
    assert kinds.tolist() == [0, 1]
