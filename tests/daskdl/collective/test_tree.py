from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
