"""Workers of clusters that were started here are not disturbed beside their tasks."""

from __future__ import annotations

import sys
import time

import dask
import pytest
from distributed import LocalCluster

from daskdl.cluster import connect
from daskdl.cluster.undisturbed import undisturbed


def looks(client):
    """Return how often the profiler has looked at a task of a second."""
    client.submit(time.sleep, 1, pure=False).result()
    (count,) = client.run(lambda dask_worker: _count(dask_worker)).values()
    return count


def _count(worker):
    return worker.profile_recent["count"] + sum(p["count"] for _, p in worker.profile_history)


@pytest.fixture(scope="module")
def local():
    with connect("local", workers=1) as client:
        yield client


def test_malloc_has_been_told_before_the_first_task(local):  # which imports much
    assert list(local.run(lambda: "daskdl.kernels.runtime.memory" in sys.modules).values()) == [
        True
    ]


def test_the_profiler_leaves_the_threads_alone(local):
    assert looks(local) <= 2


def test_a_profiler_that_looks_less_often_or_not_at_all_is_left_as_it_is():
    for settings, expected in (({"interval": "5 s"}, 5000), ({"enabled": False}, None)):
        config = {f"distributed.worker.profile.{name}": value for name, value in settings.items()}
        with (
            dask.config.set(config),
            LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
            cluster.get_client() as client,
        ):
            client.register_plugin(undisturbed())
            (profiler,) = (w.periodic_callbacks.get("profile") for w in cluster.workers.values())
            assert (profiler and profiler.callback_time) == expected
