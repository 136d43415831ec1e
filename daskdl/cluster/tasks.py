"""Tasks: the worker of each shard, waiting for results, and the run of a task."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING

from daskdl.compat.dask import wait_for

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Client, Future


def assign(holders: Sequence[str | None], workers: Mapping[str, int]) -> list[str]:
    """Return a worker for every shard; a shard stays on its worker unless that overloads it.

    ``holders`` are the addresses of the workers that hold each shard, None for one that is not
    loaded; ``workers`` are the participating workers and their threads. No worker gets more than
    its share by threads, rounded up. A new shard goes to the worker of the previous shard while
    that has room, so that the lower sums are local.
    """
    threads = sum(workers.values())
    room = {w: -(-len(holders) * n // threads) for w, n in sorted(workers.items())}
    load: Counter[str] = Counter()
    owners: list[str | None] = []
    for holder in holders:
        if holder is not None and load[holder] < room.get(holder, 0):
            load[holder] += 1
            owners.append(holder)
        else:
            owners.append(None)
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


def done(client: Client, futures: Sequence[Future], timeout: float) -> bool:
    """Wait for up to ``timeout`` s, and return whether all are done, with success or error.

    Raises FuturesCancelledError when all are done and one was cancelled.
    """

    async def ended() -> None:
        # Wait one by one: waiting for all together costs time for each future at every call. Do
        # not use wait(), which needs the default client: with client.as_current() two fits in two
        # threads would leave Dask's default scheduler changed.
        for future in futures:
            if future.status == "pending":
                with suppress(CancelledError):  # FuturesCancelledError's base
                    await wait_for([future])

    async def ended_in_time() -> bool:
        # Do not let an exception escape: Dask keeps it, and with it the futures, until Python
        # collects garbage.
        try:
            await asyncio.wait_for(ended(), timeout)
        except TimeoutError:
            return False
        return True

    if not client.sync(ended_in_time):
        return False
    if any(future.cancelled() for future in futures):
        client.sync(wait_for, futures)  # raises FuturesCancelledError
    return True


def same_run(key: Key) -> Callable[[Key], bool]:
    """Return a test for keys of the same run; keys begin with <task>-<run>."""

    def run_of(other: Key) -> str | None:
        return str(other[0]).rpartition("-")[2] if isinstance(other, tuple) else None

    return lambda other: isinstance(other, tuple) and run_of(other) == run_of(key)
