"""Broadcast tree: rank 0 above all others, over the connections that a plan needs anyway.

The driver speaks to rank 0 alone, so that a request costs it as much with 256 ranks as with two.
Notes go down the tree. Results come up: each rank passes on its own and its subtree's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daskdl.collective.plan import Plan


@dataclass(frozen=True)
class TreePlace:
    """One rank's place in the tree.

    Attributes
    ----------
    parent : int, optional
        The rank above; rank 0 has none.
    children : list of int
        The ranks right below.
    below : list of int
        The rank itself, and then each child's ``below``.
    """

    parent: int | None
    children: list[int]
    below: list[int]


def broadcast_tree(plans: Sequence[Plan]) -> list[TreePlace]:
    """Return the place of every rank, as few connections from rank 0 as the plans allow."""
    parents: dict[int, int | None] = {0: None}
    queue = [0]
    for rank in queue:  # which grows meanwhile
        for peer in plans[rank].peers:
            if peer not in parents:
                parents[peer] = rank
                queue.append(peer)
    children: dict[int, list[int]] = {rank: [] for rank in queue}
    below: dict[int, list[int]] = {}
    for rank in queue[1:]:
        children[parents[rank] or 0].append(rank)
    for rank in reversed(queue):
        below[rank] = [rank, *(r for child in children[rank] for r in below[child])]
    return [TreePlace(parents[r], children[r], below[r]) for r in range(len(plans))]
