"""Group: the ranks of a collective, their workers and their shards."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from daskdl.collective.broadcast_tree import TreePlace, broadcast_tree
from daskdl.collective.plan import Plan, plans


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
