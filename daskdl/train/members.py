"""Gang: who takes part in a run of groups, and which part of the work is whose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from daskdl.collective.parts import slice_of
from daskdl.collective.plan import Plan, plans
from daskdl.collective.relay import Relay, relays
from daskdl.train.tables import Tables


@dataclass(frozen=True)
class Gang:
    """Who takes part, for as long as they are the same.

    Parameters
    ----------
    id : str
        Unique.
    addresses : tuple of str
        Of the members' workers, by rank.
    owners : tuple of int
        The rank of the member that holds each shard.
    patience : float
        Seconds that a member waits for another.
    stays : bool
        Whether it is asked for more groups after the first.
    """

    id: str
    addresses: tuple[str, ...]
    owners: tuple[int, ...]
    patience: float
    stays: bool = True

    def is_of(self, addresses: tuple[str, ...], owners: tuple[int, ...]) -> bool:
        """Return whether these are the members and their shards."""
        return (self.addresses, self.owners) == (addresses, owners)

    def name(self, rank: int) -> str:
        """Return how errors call a member."""
        shards = self.shards(rank)
        some = ", ".join(map(str, shards[:8])) + (", ..." if len(shards) > 8 else "")
        return f"worker {self.addresses[rank]} (shard{'s' * (len(shards) > 1)} {some})"

    def plan(self, rank: int) -> Plan:
        """Return what a member does."""
        return _plans(self.owners)[rank]

    @property
    def relays(self) -> list[Relay]:
        """Return where each member stands between the first one and the others."""
        return _relays(self.owners)

    def slices(self, tables: Tables) -> list[list[slice]]:
        """Return which numbers of the whole vector each member has."""
        return [owned(plan, tables) for plan in _plans(self.owners)]

    def shards(self, rank: int) -> list[int]:
        """Return a member's shards."""
        return [s for s, owner in enumerate(self.owners) if owner == rank]


@lru_cache(maxsize=4)
def _plans(owners: tuple[int, ...]) -> list[Plan]:
    return plans(owners)


@lru_cache(maxsize=4)
def _relays(owners: tuple[int, ...]) -> list[Relay]:
    return relays(_plans(owners))


def owned(plan: Plan, tables: Tables) -> list[slice]:
    """Return which numbers of the whole vector a member has, those of tables last."""
    return [slice_of(span, tables.start) for span in plan.owned] + tables.slices(plan.owned)
