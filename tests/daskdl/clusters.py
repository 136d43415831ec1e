"""Small clusters on this machine, whose workers are threads of this process by default.

Worker processes are forks of one server, which has imported and loaded what they need. So a worker
starts, or comes back after a test killed it, in a tenth of the time of a new Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

#: Dask's setting with which workers are new processes, as they are for users.
SPAWN = {"distributed.worker.multiprocessing-method": "spawn"}
dask.config.set(dict.fromkeys(SPAWN, "forkserver"))
get_mp_context().set_forkserver_preload(["distributed.nanny", "tests.daskdl.train.warm"])


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
