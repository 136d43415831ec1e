"""Clients, their requests and their locks: checked in distributed 2025.1.0 and 2026.8.0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client, Future


async def wait_for(futures: Sequence[Future]) -> None:
    """Wait until all futures are done, inside a client's event loop.

    Raises FuturesCancelledError when one was cancelled.
    """
    from distributed.client import _wait

    await _wait(futures)


def scheduler_operation(client: Client, name: str) -> Any:
    """Return a request to the scheduler as an awaitable function, such as "ncores_running"."""
    return getattr(client.scheduler, name)


def worker_operation(client: Client, address: str, name: str) -> Any:
    """Return a request to a worker, one of its ``handlers``, as an awaitable function."""
    return getattr(client.rpc(address), name)


def stop_renewing(client: Client, lock: Any) -> None:
    """Stop the callback by which a lock renews its lease while its client lives."""
    renewing = getattr(lock, "refresh_callback", None)  # None if leases do not end
    if renewing is not None:
        client.loop.add_callback(renewing.stop)
