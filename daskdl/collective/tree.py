"""The canonical order of sums: a binary tree over the shard index, for any number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def fold(leaves: Sequence[T | None], combine: Callable[[int, int, T, T], T]) -> list[T]:
    """Combine neighbours level by level until at most two are left.

    The shape depends only on ``len(leaves)`` and on which leaves are None, so that floating-point
    sums have the same bits on any number of workers. It is the pairing of recursive halving.

    Parameters
    ----------
    leaves : sequence
        One leaf for each shard; None if the shard has nothing to add.
    combine : callable
        ``combine(level, shard, left, right)``; ``level`` counts from 1, and ``shard`` is the first
        one below ``left``.

    Returns
    -------
    list
        The operands of the last sum, one or two; none if all leaves are None.

    Examples
    --------
    >>> fold(["a", "b", "c", None, "e"], lambda level, shard, left, right: f"({left}{right})")
    ['((ab)c)', 'e']
    """
    nodes, level = list(leaves), 0
    while len(nodes) > 2:
        level += 1
        above: list[T | None] = []
        for i in range(0, len(nodes), 2):
            left = nodes[i]
            right = nodes[i + 1] if i + 1 < len(nodes) else None
            if left is None or right is None:
                above.append(right if left is None else left)
            else:
                above.append(combine(level, i << (level - 1), left, right))
        nodes = above
    return [node for node in nodes if node is not None]
