"""Calls on a cluster: in order, few at a time; a call that kills its worker is reported."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import dask
import pytest
from distributed import Client, Event

from daskdl.cli import app
from daskdl.cluster import doctor
from daskdl.cluster.bounded import IN_FLIGHT, Died, connected, in_order
from daskdl.collective import run as run_together
from daskdl.console import run
from daskdl.errors import ClusterError
from tests.daskdl.clusters import SPAWN, small, small_client
from tests.daskdl.train.runs import fit, network, problem


@pytest.fixture(scope="module")
def client():
    with small_client(default=True, threads_per_worker=2) as client:
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


def test_few_calls_are_under_way(client):
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


def test_without_a_client_small_work_runs_here():
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
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        small_client(default=True, processes=True) as client,
    ):
        results = list(in_order(client, _die_of_two, [(2,), (3,)], "test"))
    assert isinstance(results[0][1], Died)
    assert "KilledWorker" in results[0][1].reason


NONE = "import sys; sys.modules['daskdl'] = None"


@pytest.fixture(scope="module")
def bare() -> Iterator[Client]:
    """A worker that cannot import daskdl."""
    with dask.config.set(SPAWN), small_client(processes=True, preload=[NONE]) as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "stage"),
    [
        (lambda client: fit(problem(), client=client, engine="gang"), "start of the fit"),
        (lambda client: fit(problem(), client=client, engine="graph"), r"iterations 0 to \d+"),
        (lambda client: run_together(client, len), "collective len"),
    ],
)
def test_a_worker_without_daskdl_is_reported_in_one_sentence(
    bare: Client, work: Callable[[Client], Any], stage: str
) -> None:
    message = rf"^({stage}|sending to workers): expected daskdl \S+ on every machine .*, install it"
    with pytest.raises(ClusterError, match=message):
        work(bare)


def test_predictions_without_daskdl_say_so_too(bare: Client) -> None:
    with bare.as_current(), pytest.raises(ClusterError, match=r"^prediction: expected daskdl"):
        network().predict(problem())


def test_doctor_names_the_worker(bare: Client) -> None:
    facts = doctor.diagnosis_of(bare)
    (address,) = bare.nthreads()
    message = f"worker {address}: expected daskdl {facts['client']['packages']['daskdl']} as here"
    assert facts["differences"] == [f"{message}, found none; install it there"]
    assert facts["workers"] == {address: {"failed": facts["differences"][0]}}
    assert facts["scheduler"]["packages"] == facts["client"]["packages"]
    json.dumps(facts)


@pytest.mark.slow
def test_a_scheduler_without_workers_is_reported_soon(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    monkeypatch.setattr(doctor, "WORKERS_WITHIN", 0.2)
    with small(0) as cluster:
        address = cluster.scheduler_address
        assert run(app, ["doctor", "--cluster", address]) == 4
    assert f"doctor: waiting up to 0.2 s for 1 workers at {address}, of which 0" in caplog.text
    message = f"doctor: expected 1 workers at {address} within 0.2 s, found 0; start workers"
    assert message in capsys.readouterr().err
