"""Trees: the canonical order of sums, and the broadcast."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.collective.broadcast_tree import broadcast_tree
from daskdl.collective.payload import Payload
from daskdl.collective.plan import plans
from daskdl.collective.reduction import Reduction
from daskdl.collective.tree import fold

Leaves = list[str | None]


def halved(leaves: Leaves, first: int, size: int) -> str | None:
    """Recursive halving of ``size`` leaves, a power of two, as the definition has it."""
    if size == 1:
        return leaves[first] if first < len(leaves) else None
    half = size // 2
    left, right = halved(leaves, first, half), halved(leaves, first + half, half)
    return f"({left}{right})" if left and right else left or right


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_the_tree_is_recursive_halving_whichever_leaves_there_are(there: list[bool]) -> None:
    leaves: Leaves = [f"{i}," if yes else None for i, yes in enumerate(there)]
    half = max(1, 2 ** math.ceil(math.log2(len(leaves))) // 2)
    expected = [halved(leaves, first, half) for first in (0, half)]
    found = fold(leaves, lambda level, shard, left, right: f"({left}{right})")
    assert found == [tree for tree in expected if tree]


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=40))
def test_nothing_is_lost_or_added_twice(values: list[int]) -> None:
    leaves = [np.float64(v) for v in values]  # their sums are exact
    assert sum(fold(leaves, lambda level, shard, left, right: left + right)) == sum(values)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 13])
def test_a_node_is_named_by_its_level_and_first_shard(n: int) -> None:
    names: list[tuple[int, int]] = []

    def combine(level: int, shard: int, left: set[int], right: set[int]) -> set[int]:
        names.append((level, shard))
        assert shard == min(left)
        assert min(right) == shard + 2 ** (level - 1)
        return left | right

    fold([{s} for s in range(n)], combine)
    assert len(set(names)) == len(names) == n - 2


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


def test_sums_of_own_shards_leave_one_vector() -> None:
    reduction = Reduction(plans([0] * 4)[0], 8)
    leaves = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    want = (leaves[0] + leaves[1]) + (leaves[2] + leaves[3])
    for s, leaf in enumerate(leaves):
        reduction.put(s, Payload(leaf.copy(), sums=(float(s),)))
    assert len([held for held in reduction._held.values() if held.pieces]) == 1
    total = reduction.total()
    np.testing.assert_array_equal(total.vector, want)
    assert total.sums == (6.0,)


def test_shards_without_samples_alone_make_no_sum() -> None:
    reduction = Reduction(plans([0, 0])[0], 8)
    for s in range(2):
        reduction.put(s, None)
    with pytest.raises(ValueError, match="expected a payload of at least one shard, found none"):
        reduction.total()
