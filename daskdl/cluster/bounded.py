"""Run many calls on a Dask cluster: results in order, a bounded number of pending calls."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from daskdl.cluster.connection import connect
from daskdl.kernels.runtime.threads import available_cores, granted_cores, thread_budget

if TYPE_CHECKING:
    from distributed import Client

# Pending calls per thread: enough to keep all busy while the first result is awaited.
IN_FLIGHT = 4
# Least number of bytes for which starting processes pays off.
BYTES_FOR_PROCESSES = 32_000_000


@dataclass(frozen=True)
class Died:
    """Result of a call whose workers died again and again."""

    reason: str


def in_order(
    client: Client | None,
    function: Callable[..., Any],
    arguments: Iterable[tuple[Any, ...]],
    name: str,
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield arguments and result of each call in order, with a bounded number of pending calls.

    A call whose workers die gives :class:`Died`, and the others continue. Without a client the
    calls run in this process, one after the other.
    """
    if client is None:
        for call in arguments:
            yield call, function(*call)
        return
    from distributed import CancelledError, KilledWorker

    window = max(1, IN_FLIGHT * sum(client.nthreads().values()))
    waiting: deque[tuple[tuple[Any, ...], Any]] = deque()
    remaining = iter(arguments)
    try:
        while True:
            while len(waiting) < window:
                following = next(remaining, None)
                if following is None:
                    break
                future = client.submit(
                    function, *following, key=f"{name}-{os.urandom(8).hex()}", pure=False
                )
                waiting.append((following, future))
            if not waiting:
                return
            call, future = waiting.popleft()
            try:
                result = future.result()
            except (KilledWorker, CancelledError) as error:
                result = Died(f"the workers that read it died ({type(error).__name__})")
            future.release()
            yield call, result
    finally:
        for _, future in waiting:
            future.cancel()


def in_task(client: Client | None, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes with its worker's threads, also Dask collections."""
    return function if client is None else partial(_in_task, function)


def _in_task(function: Callable[..., Any], *arguments: Any) -> Any:
    import dask

    with thread_budget(granted_cores()), dask.config.set(scheduler="synchronous"):
        return function(*arguments)


@contextmanager
def connected(client: Client | None, size: int) -> Iterator[Client | None]:
    """Yield the client; if None, one of local processes when there are many bytes to read."""
    cores = available_cores()
    if client is not None or cores == 1 or size <= BYTES_FOR_PROCESSES:
        yield client
        return
    # One thread per process: HDF5 runs one thread at a time.
    with connect("local", workers=cores, threads_per_worker=1, dashboard=False) as local:
        yield local
