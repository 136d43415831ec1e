"""Waiting: whether the results of tasks are there, and which tasks are of one run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING

from daskdl.compat.distributed_client import wait_for

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Client, Future


def done(client: Client, futures: Sequence[Future], timeout: float) -> bool:
    """Wait for so many seconds, and return whether all are done, well or not.

    Raises
    ------
    FuturesCancelledError
        When all are done and one was cancelled.
    """

    async def ended() -> None:
        # One after the other: to wait for all at once costs as much for each of them, at every
        # call. And not by wait(), which asks the default client; within client.as_current()
        # two fits in two threads would leave Dask's default scheduler changed.
        for future in futures:
            if future.status == "pending":
                with suppress(CancelledError):  # FuturesCancelledError's base
                    await wait_for([future])

    async def ended_in_time() -> bool:
        # Dask keeps an exception that leaves this, and with it the futures, until Python
        # collects garbage.
        try:
            await asyncio.wait_for(ended(), timeout)
        except TimeoutError:
            return False
        return True

    if not client.sync(ended_in_time):
        return False
    if any(future.cancelled() for future in futures):
        client.sync(wait_for, futures)  # which raises
    return True


def same_run(key: Key) -> Callable[[Key], bool]:
    """Return the function that tells tasks of a run: their keys begin with <task>-<run>."""

    def run_of(other: Key) -> str | None:
        return str(other[0]).rpartition("-")[2] if isinstance(other, tuple) else None

    return lambda other: isinstance(other, tuple) and run_of(other) == run_of(key)
