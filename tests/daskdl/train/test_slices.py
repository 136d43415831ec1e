from __future__ import annotations

import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskdl.train.members import Gang
from daskdl.train.slices import cut, put_together
from daskdl.train.tables import Tables


def test_members_share_the_vector_and_the_tables_out() -> None:
    gang = Gang("g", ("tcp://a:1", "tcp://b:1", "tcp://c:1"), (0, 0, 1, 2, 1), 1.0)
    tables = Tables(("users", "items"), ((90, 6), (1, 7)), 1000)
    covered = [
        i for rank in range(3) for s in gang.slices(rank, tables) for i in range(s.start, s.stop)
    ]
    assert sorted(covered) == list(range(1000 + 90 * 6 + 7))


@given(size=st.integers(1, 400), members=st.integers(1, 7))
def test_a_state_is_cut_and_put_together(size: int, members: int) -> None:
    weights = np.arange(size, dtype=np.float32)
    slots = {"mean": weights + 1000, "square": weights + 2000}
    gang = Gang("g", tuple(map(str, range(members))), tuple(range(members)), 1.0)
    slices = [gang.slices(rank, Tables((), (), size)) for rank in range(members)]
    parts = [cut(weights, slots, own) for own in slices]
    assert sum(sys.getsizeof(p) for p in parts) >= 3 * weights.nbytes
    found, state = put_together(parts, slices, size)
    np.testing.assert_array_equal(found, weights)
    assert state.keys() == slots.keys()
    for name, slot in slots.items():
        np.testing.assert_array_equal(state[name], slot)
