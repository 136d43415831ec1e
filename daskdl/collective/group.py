"""Group: the ranks of a collective, their workers and shards, and the broadcast tree over them.

Rank 0 is above all others in the tree, over the connections that a plan needs anyway. The driver
speaks to rank 0 alone, so that a request costs it as much with 256 ranks as with two. Notes go down
the tree. Results come up: each rank passes on its own and its subtree's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from daskdl.collective.plan import Plan, plans


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


@dataclass(frozen=True)
class Group:
    """The ranks that take part: their addresses and shards.

    Parameters
    ----------
    id : str
        Unique.
    addresses : tuple of str
        Addresses of the workers, by rank.
    owners : tuple of int
        The rank that holds each shard; each rank has a shard.
    patience : float
        Seconds that a rank waits for another.
    buckets : int
        Number of equal parts of a vector; each part is divided among the ranks.
    """

    id: str
    addresses: tuple[str, ...]
    owners: tuple[int, ...]
    patience: float
    buckets: int = 1

    def is_of(self, addresses: tuple[str, ...], owners: tuple[int, ...]) -> bool:
        """Return whether these workers and shards are the group's."""
        return (self.addresses, self.owners) == (addresses, owners)

    def name(self, rank: int) -> str:
        """Return a rank's name for errors."""
        shards = self.shards(rank)
        some = ", ".join(map(str, shards[:8])) + (", ..." if len(shards) > 8 else "")
        return f"worker {self.addresses[rank]} (shard{'s' * (len(shards) > 1)} {some})"

    def shards(self, rank: int) -> list[int]:
        """Return a rank's shards."""
        return [s for s, owner in enumerate(self.owners) if owner == rank]

    def plan(self, rank: int) -> Plan:
        """Return a rank's plan of the whole vector."""
        return _plan(self.owners, self.buckets, rank)

    def bucket_plans(self, rank: int) -> list[Plan]:
        """Return a rank's plan of each bucket, from the vector's beginning on."""
        whole, n = _plans(self.owners)[rank], self.buckets
        return [whole.within((Fraction(k, n), Fraction(k + 1, n))) for k in range(n)]

    @property
    def tree(self) -> list[TreePlace]:
        """Return each rank's place in the broadcast tree."""
        return _tree(self.owners)


@lru_cache(maxsize=4)
def _plans(owners: tuple[int, ...]) -> list[Plan]:
    return plans(owners)


@lru_cache(maxsize=512)
def _plan(owners: tuple[int, ...], buckets: int, rank: int) -> Plan:
    whole = _plans(owners)[rank]
    return whole.in_buckets(buckets) if buckets > 1 else whole


@lru_cache(maxsize=4)
def _tree(owners: tuple[int, ...]) -> list[TreePlace]:
    return broadcast_tree(_plans(owners))
