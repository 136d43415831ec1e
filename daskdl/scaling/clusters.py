"""Clusters to measure on: one that is there or is started, or many waiting workers of a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from daskdl.cluster import connect
from daskdl.cluster.connection import quiet, wait_for
from daskdl.errors import SettingsError
from daskdl.kernels.runtime.threads import available_cores

if TYPE_CHECKING:
    from distributed import Client

#: From a number of workers to a client of a cluster that has them.
ClientOf = Callable[[int], "Client"]

#: Waiting workers in one process, at most.
TOGETHER = 32

#: Vectors of the model's size that a worker holds at a time, about: weights, gradient, its sums,
#: what was kept from the group before.
HELD = 8


@contextmanager
def real(cluster: str, workers: int | None, threads: int) -> Iterator[tuple[ClientOf, int]]:
    """Yield a function that gives a client, the same for any number of workers, and their number.

    Raises
    ------
    SettingsError
        For a job queue, when nobody says how many workers it will have.
    ClusterError
        When the workers do not come.
    """
    if workers is None and cluster.endswith((".yaml", ".yml")):
        raise SettingsError(
            f"workers: expected how many of {cluster} to measure on, found none; give --workers N"
        )
    with connect(cluster, workers=workers, threads_per_worker=threads) as client:
        wait_for(client, workers or 1, "bench scaling")
        yield lambda n: client, workers or len(client.nthreads())


@contextmanager
def waiting(workers: int | None) -> Iterator[tuple[ClientOf, int]]:
    """Yield a function that starts a cluster of so many workers, many in one process here.

    The one before is ended. Workers that have nothing to do would cost heartbeats.
    """
    from daskdl.scaling.processes import cluster

    with quiet(), ExitStack() as stack:
        held: dict[int, Client] = {}

        def client_of(n: int) -> Client:
            if n not in held:
                held.clear()
                stack.close()
                hosts = max(min(n, available_cores()), -(-n // TOGETHER))
                held[n] = stack.enter_context(cluster(n, hosts)).client
            return held[n]

        yield client_of, workers or TOGETHER


def check_memory(workers: int, size: int) -> None:
    """Raise a SettingsError when so many models of so many numbers do not fit in memory."""
    import psutil

    needed, found = 4 * size * HELD * workers, psutil.virtual_memory().available
    if needed > found:
        raise SettingsError(
            f"simulate: expected at least {needed / 1e9:.1f} GB of free memory for {workers} "
            f"workers with {4 * size / 1e6:.3g} MB of weights each, found {found / 1e9:.1f} GB; "
            "give fewer --workers or --megabytes"
        )
