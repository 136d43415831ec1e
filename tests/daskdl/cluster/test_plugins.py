"""A worker that is lost while it sets up a plugin does not stand for a lost scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from distributed import Client, LocalCluster, Worker, WorkerPlugin

from daskdl.cluster.client import Cluster
from daskdl.errors import ClusterError


@pytest.fixture
def workers() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=3,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


class Leaving(WorkerPlugin):
    """The first workers that set it up break their connections, and leave if they are to."""

    name, idempotent = "leaving", True
    left = 0

    def __init__(self, leaving: int, whole: bool) -> None:
        self.leaving, self.whole = leaving, whole

    async def setup(self, worker: Worker) -> None:
        if Leaving.left < self.leaving:
            Leaving.left += 1
            for comm in list(worker._comms):
                comm.abort()
            if self.whole:
                asyncio.get_running_loop().create_task(worker.close())
            await asyncio.sleep(0.1)


def test_a_lost_worker_is_passed_over(workers: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leaving, "left", 0)
    Cluster(workers).install(Leaving(1, True), "a test")
    assert Leaving.left == 1
    found = workers.run(lambda dask_worker: "leaving" in dask_worker.plugins)
    assert list(found.values()) == [True, True]


def test_losses_without_end_are_told(workers: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leaving, "left", 0)
    with pytest.raises(ClusterError, match=r"^a test: .* found that 5 times one was lost \("):
        Cluster(workers).install(Leaving(1000, False), "a test")
