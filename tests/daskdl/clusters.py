"""Small clusters on this machine, whose workers are threads of this process by default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client, LocalCluster


def small(workers: int = 1, **more: Any) -> LocalCluster:
    """Return a cluster of workers of one thread each, without dashboards."""
    options = {
        "n_workers": workers,
        "threads_per_worker": 1,
        "processes": False,
        "dashboard_address": "127.0.0.1:0",
        "scheduler_kwargs": {"dashboard": False},
        "worker_dashboard_address": None,
    }
    return LocalCluster(**{**options, **more})


@contextmanager
def small_client(workers: int = 1, default: bool = False, **more: Any) -> Iterator[Client]:
    """Yield the client of such a cluster; a fit without a client uses it only as the default."""
    with small(workers, **more) as cluster, Client(cluster, set_as_default=default) as client:
        yield client
