from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.collective.broadcast_tree import broadcast_tree
from daskdl.collective.plan import plans


@given(st.integers(1, 40), st.integers(0, 9))
def test_all_ranks_hang_on_the_first_over_connections_that_they_have(n: int, more: int) -> None:
    of_all = plans([*range(n), *(s % n for s in range(more))])
    found = broadcast_tree(of_all)
    assert found[0].parent is None
    assert sorted(found[0].below) == list(range(n))
    for rank, place in enumerate(found):
        below = [r for child in place.children for r in found[child].below]
        assert place.below == [rank, *below]
        for child in place.children:
            assert found[child].parent == rank
            assert child in of_all[rank].peers


@pytest.mark.slow
def test_the_way_to_the_last_of_many_is_short() -> None:
    found = broadcast_tree(plans(range(256)))
    assert len(found[0].children) == 8
    depth = {0: 0}
    for rank in found[0].below[1:]:
        parent = found[rank].parent
        assert parent is not None
        depth[rank] = depth[parent] + 1
    assert max(depth.values()) == 8
