"""Calls on a cluster: in order, few at a time, and one that kills its worker is not the end."""

from __future__ import annotations

import os
import signal

import pytest
from distributed import Client, Event, LocalCluster

from daskdl.cluster.bounded import IN_FLIGHT, Died, connected, in_order


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_results_come_in_order(client):
    later_one_done = Event("later one done", client=client)

    def square(i):
        if i == 0:
            assert Event("later one done").wait(timeout=60)
        if i == 5:
            Event("later one done").set()
        return i * i

    results = list(in_order(client, square, [(i,) for i in range(20)], "test"))
    assert later_one_done.is_set()
    assert results == [((i,), i * i) for i in range(20)]


def test_few_are_under_way(client):
    taken = []

    def arguments():
        for i in range(100):
            taken.append(i)
            yield (i,)

    stream = in_order(client, abs, arguments(), "test")
    for i in range(10):
        next(stream)
        assert len(taken) <= i + 1 + 2 * IN_FLIGHT
    stream.close()
    assert len(taken) < 100


@pytest.mark.slow
def test_an_error_in_a_call_is_raised_as_itself(client):
    with pytest.raises(ZeroDivisionError):
        list(in_order(client, lambda x: 1 // x, [(1,), (0,)], "test"))


def test_without_a_client_few_bytes_are_worked_on_here():
    with connected(None, 1) as used:
        assert used is None
        assert list(in_order(used, abs, [(-1,), (2,)], "test")) == [((-1,), 1), ((2,), 2)]


def test_a_given_client_is_used(client):
    with connected(client, 10**12) as used:
        assert used is client


def _die_of_two(i):
    if i == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return i


@pytest.mark.kills
def test_a_call_that_kills_its_workers_is_reported():
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        results = list(in_order(client, _die_of_two, [(2,), (3,)], "test"))
    assert isinstance(results[0][1], Died)
    assert "KilledWorker" in results[0][1].reason
