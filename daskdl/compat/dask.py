"""Dask's tasks and graphs, clients, requests and locks, and the socket of a plain TCP connection.

Checked in dask and distributed 2025.1.0 and 2026.8.0, and tornado 6.5. ``dask._task_spec`` is
private by its name; Dask's own collections use it since 2024.12.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dask._task_spec import Alias, Task, TaskRef
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

if TYPE_CHECKING:
    from distributed import Client, Future
    from distributed.comm import Comm
    from tornado.iostream import IOStream

__all__ = [
    "Alias",
    "HighLevelGraph",
    "MaterializedLayer",
    "Task",
    "TaskRef",
    "is_plain_tcp",
    "scheduler_operation",
    "stop_renewing",
    "stream_of",
    "take_socket",
    "wait_for",
    "worker_operation",
]


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


def is_plain_tcp(comm: Comm) -> bool:
    """Return whether a connection is plain TCP, without TLS."""
    from distributed.comm.tcp import TCP
    from tornado.iostream import IOStream

    return type(comm) is TCP and type(comm.stream) is IOStream


def stream_of(comm: Comm) -> IOStream:
    """Return the stream of a plain TCP connection.

    Raises StreamClosedError when the connection is closed.
    """
    from tornado.iostream import StreamClosedError

    if comm.stream is None:
        raise StreamClosedError
    return comm.stream


def take_socket(stream: IOStream) -> socket.socket:
    """Return the socket of a stream, and remove it from the event loop."""
    stream.io_loop.remove_handler(stream.fileno())
    duplicate: socket.socket = stream.socket.dup()
    duplicate.setblocking(False)
    return duplicate
