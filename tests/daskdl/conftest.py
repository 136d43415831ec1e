"""PyTorch as an oracle where it is installed, and a cluster of real worker processes."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from distributed import Client, LocalCluster


@pytest.fixture(scope="session")
def torch() -> Any:
    """PyTorch, the extra `peers`; the test is skipped without it."""
    return pytest.importorskip("torch")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster whose number of worker processes :func:`client_of` sets."""
    import dask

    from tests.daskdl.clusters import small

    folder = str(tmp_path_factory.mktemp("workers"))
    options = {"silence_logs": logging.CRITICAL, "local_directory": folder}
    with (
        # As in connect("local"): otherwise a worker killed twice in 15 s does not come back.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}),
        small(2, processes=True, **options) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="session")
def any_client(cluster: LocalCluster) -> Iterator[Client]:
    from distributed import Client

    # Not the default, so that a fit without a client runs in this process.
    client = Client(cluster, set_as_default=False)
    yield client
    client.close()


@pytest.fixture
def client_of(cluster: LocalCluster, any_client: Client) -> Callable[[int], Client]:
    """Return a function that scales the cluster to a number of workers and returns its client."""

    def settled(workers: int, seconds: float) -> bool:
        limit = time.monotonic() + seconds
        # A worker that an earlier test killed, or that is closing, may still be listed.
        while not (
            cluster.plan == cluster.requested == cluster.observed
            and len(any_client.nthreads()) == workers
            and len(any_client.run(os.getpid, on_error="ignore")) == workers
        ):
            if time.monotonic() > limit:
                return False
            time.sleep(0.02)
        return True

    def client_of(workers: int) -> Client:
        # A worker that is just restarting would come and go after the cluster shrank.
        settled(len(cluster.plan), 15)
        cluster.scale(workers)
        assert settled(workers, 180), "the workers did not come or go"
        return any_client

    return client_of


@pytest.fixture
def client(client_of: Callable[[int], Client]) -> Client:
    """The client of two workers."""
    return client_of(2)


@pytest.fixture
def current(client: Client) -> Iterator[Client]:
    """The client of two workers, as the current client."""
    with client.as_current():
        yield client
