"""Running many calls on a Dask cluster: results in order, a bounded number under way."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client

# Calls under way for each thread: enough to keep all busy while one waits for its turn.
IN_FLIGHT = 4
# From this many bytes on it pays to start processes of one's own.
BYTES_FOR_PROCESSES = 32_000_000


@dataclass(frozen=True)
class Died:
    """Stands for the result of a call whose workers died, time and again."""

    reason: str


def in_order(
    client: Client, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], name: str
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Give arguments and result of each call in their order, with a bounded number under way.

    A call of which the workers die gives :class:`Died`, and the others go on.
    """
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
                future = client.submit(function, *following, key=_key(name), pure=False)
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


def _key(name: str) -> str:
    return f"nowcast-{name}-{os.urandom(8).hex()}"


@contextmanager
def connected(client: Client | None, size: int) -> Iterator[Client]:
    """Give the client, or one of a local cluster: processes when there are many bytes to read."""
    if client is not None:
        yield client
        return
    from distributed import Client, LocalCluster

    from daskdl.kernels.runtime.threads import available_cores

    cores = available_cores()
    several = cores > 1 and size > BYTES_FOR_PROCESSES
    # One thread a process: HDF5 lets one thread in at a time.
    with (
        LocalCluster(
            n_workers=cores if several else 1,
            threads_per_worker=1,
            processes=several,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as local,
    ):
        yield local
