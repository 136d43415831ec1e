"""Placement: the worker to which each shard belongs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dask.typing import Key


def assign(holders: Sequence[str | None], workers: Mapping[str, int]) -> list[str]:
    """Give every shard a worker; a shard stays where it lies unless that overloads the worker.

    Parameters
    ----------
    holders : sequence
        Address of the worker that holds each shard, None for a shard that is not loaded.
    workers : mapping of address to threads
        Those that take part; not empty.

    Returns
    -------
    list of address
        No worker has more than its share by threads, rounded up. New shards go to the worker of
        the shard before them while it has room, so that the lower sums are local.
    """
    threads = sum(workers.values())
    room = {w: -(-len(holders) * n // threads) for w, n in sorted(workers.items())}
    load: Counter[str] = Counter()
    owners: list[str | None] = []
    for holder in holders:
        stays = holder in room and load[holder] < room[holder]
        owners.append(holder if stays else None)
        load.update([holder] if stays and holder else [])
    result: list[str] = []
    for owner in owners:
        if owner is None:
            before = result[-1] if result else None
            if before is not None and load[before] < room[before]:
                owner = before
            else:
                owner = max(room, key=lambda w: room[w] - load[w])
            load[owner] += 1
        result.append(owner)
    return result


class Place:
    """Annotation of a layer: a task whose key ends with a shard goes to that shard's worker."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = list(addresses)

    def __call__(self, key: Key) -> list[str]:
        """Return the address for a key (name, ..., shard)."""
        assert isinstance(key, tuple)
        return [self.addresses[int(key[-1])]]
