"""The engine's view of a cluster: where values lie, fetches and waits with deadlines."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import dask
import distributed
import numpy as np
import pytest
from distributed import Client, LocalCluster, WorkerPlugin, get_worker

from daskdl.cluster.attempts import lost
from daskdl.cluster.client import Cluster
from daskdl.cluster.current import current_client
from daskdl.cluster.tasks import Place
from daskdl.compat.dask import Task, TaskRef
from daskdl.errors import ClusterError
from tests.daskdl.clusters import small


def where() -> str:
    return str(get_worker().address)


def fail() -> None:
    raise ZeroDivisionError("a mistake of the user's")


def tasks_of(client: Client, prefix: str) -> list[str]:
    def keys(dask_scheduler: object) -> list[str]:
        return [str(key) for key in dask_scheduler.tasks]  # type: ignore[attr-defined]

    return [key for key in client.run_on_scheduler(keys) if prefix in key]


def wait_until(done: Callable[[], bool], message: str) -> None:
    limit = time.monotonic() + 20
    while not done():
        assert time.monotonic() < limit, message
        time.sleep(0.02)


def test_workers_and_their_threads(client: Client) -> None:
    assert Cluster(client).workers("a test") == dict(client.nthreads())


def test_losses_count_ended_workers_and_name_the_memory_limit(client: Client) -> None:
    cluster = Cluster(client)
    cluster.workers("a test")
    first, last = sorted(client.nthreads())[:2]
    assert cluster.losses() == ""
    for worker, expected in ((first, False), (last, False), (first, True), ("tcp://other", False)):
        client.log_event(worker, {"action": "remove-worker", "expected": expected})
    client.log_event(last, "what a user may log there")
    message = f"processes of 2 workers ended meanwhile, at last that of {last}"
    wait_until(lambda: message in cluster.losses(), "the losses are not named")  # events take time
    client.log_event("worker-restart-memory", {"worker": last, "pid": 1, "rss": 1_900_000_000})
    message = "1 of them by their nannies, near the memory limit, at 1.9 GB"
    wait_until(lambda: message in cluster.losses(), "the memory limit is not named")
    with (
        dask.config.set({"daskdl.no-workers-timeout": "0s"}),
        pytest.raises(ClusterError, match=r"none for 0 s.*2 workers ended.*may have ended"),
    ):
        cluster.workers("a test", without=client.nthreads())


def test_a_task_runs_where_its_key_says(client: Client) -> None:
    channel, addresses = Cluster(client), sorted(client.nthreads())
    keys = [("where", 1, s) for s in range(6)]
    graph = {key: Task(key, where) for key in keys}
    place = Place([addresses[s % 2] for s in range(6)])
    assert channel.compute(graph, keys, place, "a test") == addresses * 3


@pytest.mark.slow
def test_a_long_wait_does_not_keep_its_tasks(client: Client) -> None:
    gc.collect()
    gc.disable()
    try:
        futures = [client.submit(time.sleep, 0.5, pure=False)]
        key = str(futures[0].key)
        assert not Cluster(client).done(futures, 0.1)
        assert Cluster(client).done(futures, 20)
        del futures
        wait_until(lambda: not tasks_of(client, key), "the task is still there")
    finally:
        gc.enable()


def test_a_task_whose_worker_is_gone_runs_elsewhere(client: Client) -> None:
    key = ("elsewhere", 1, 0)
    place = Place(["tcp://127.0.0.1:9"])
    (worker,) = Cluster(client).compute({key: Task(key, where)}, [key], place, "a test")
    assert worker in client.nthreads()


def test_computed_tasks_are_forgotten(client: Client) -> None:
    channel, address = Cluster(client), min(client.nthreads())
    good, bad = ("good", 1, 0), ("bad", 1, 0)
    channel.compute({good: Task(good, where)}, [good], Place([address]), "a test")
    with pytest.raises(ZeroDivisionError, match="the user's") as raised:
        channel.compute({bad: Task(bad, fail)}, [bad], Place([address]), "a test")
    wait_until(lambda: not tasks_of(client, "good"), "the result is kept")
    wait_until(lambda: not tasks_of(client, "bad"), "the exception keeps its task")
    assert raised.value.__traceback__ is not None


def test_values_lie_where_they_were_sent_and_go_round_the_scheduler(client: Client) -> None:
    channel, (first, second) = Cluster(client), sorted(client.nthreads())
    array = np.arange(10.0)
    future = channel.send("value", array, second)
    workers = channel.workers("a test")
    assert channel.holders([future, None], workers) == [second, None]
    assert channel.holders([future], {first: 1}) == [None]
    key = ("double", 1, 0)
    graph = {key: Task(key, np.multiply, TaskRef(future.key), 2)}
    (result,) = channel.compute(graph, [key], Place([first]), "a test")
    np.testing.assert_array_equal(result, 2 * array)


@pytest.mark.kills
def test_values_of_a_killed_worker_have_no_holder(client: Client) -> None:
    channel, address = Cluster(client), min(client.nthreads())
    future = channel.send("lost", np.ones(3), address)
    (pid,) = client.run(os.getpid, workers=[address]).values()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: address not in client.nthreads(), "the worker is still known")
    assert channel.holders([future], channel.workers("a test")) == [None]
    with pytest.raises(lost()):
        channel.send("late", np.ones(3), address)
    wait_until(lambda: len(client.nthreads()) == 2, "no worker came back")


@pytest.fixture
def empty() -> Iterator[LocalCluster]:
    with small(0) as cluster:
        yield cluster


def test_it_waits_for_the_first_worker(empty: LocalCluster, caplog) -> None:
    with Client(empty, set_as_default=False) as client:
        answers: list[dict[str, int]] = []
        asking = threading.Thread(target=lambda: answers.append(Cluster(client).workers("a test")))
        with caplog.at_level("WARNING", "daskdl"):
            asking.start()
            wait_until(lambda: "no worker at" in caplog.text, "nothing is said")
        empty.scale(1)
        asking.join(30)
        assert answers == [client.nthreads()]
        assert caplog.text.count("no worker at") == 1


def test_waiting_for_workers_ends(empty: LocalCluster) -> None:
    with (
        Client(empty, set_as_default=False) as client,
        dask.config.set({"daskdl.no-workers-timeout": "100 ms"}),
        pytest.raises(ClusterError, match=r"a test: expected workers at .*none for 0.1 s; start"),
    ):
        Cluster(client).workers("a test")


def test_a_scheduler_that_is_gone_is_named(empty: LocalCluster) -> None:
    with Client(empty, set_as_default=False) as client:
        channel, address = Cluster(client), empty.scheduler_address
        channel.check_scheduler("a test", OSError())
        empty.close()
        broken = OSError("the connection broke")
        with pytest.raises(ClusterError, match=f"a test: the scheduler at {address}"):
            channel.install(WorkerPlugin(), "a test")
        with pytest.raises(ClusterError, match=f"a test: the scheduler at {address}") as gone:
            channel.check_scheduler("a test", broken)
        assert gone.value.__cause__ is broken


@pytest.mark.slow
def test_an_adaptive_cluster_is_asked_for_a_worker(empty: LocalCluster) -> None:
    """Such a cluster starts workers for tasks that wait; a fit waits for workers first."""
    with Client(empty) as client:
        empty.adapt(minimum=0, maximum=1, interval="100ms")
        assert len(Cluster(client).workers("test")) == 1


def test_inside_a_task_no_client_is_the_current_one(client: Client) -> None:
    """A fit there would wait for the thread that its own task occupies."""

    def asked() -> bool:
        distributed.get_client()  # as joblib's backend does
        return current_client() is None

    assert client.submit(asked, pure=False).result(timeout=60)
    with client.as_current():
        assert current_client() is client
