"""Clusters to measure on, and their processes."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from types import SimpleNamespace

import psutil
import pytest

from daskdl.errors import SettingsError
from daskdl.kernels.runtime.threads import available_cores
from daskdl.scaling.processes import (
    TOGETHER,
    all_cpu_seconds,
    check_memory,
    cluster,
    cpu_seconds,
    real,
    waiting,
)


@pytest.mark.slow
def test_a_cluster_of_processes_ends_with_the_benchmark():
    with cluster(3, 2) as processes:
        pids = processes.client.run(os.getpid)
        assert sorted(pids.values()).count(processes.hosts[0].id) == 2
        assert set(pids.values()) == {host.id for host in processes.hosts}
        assert processes.client.run_on_scheduler(os.getpid) == processes.scheduler.id
        assert processes.scheduler.megabytes() > 10
    for process in (processes.scheduler, *processes.hosts):
        assert not psutil.pid_exists(process.id)


def test_cpu_seconds_are_those_of_all_threads():
    everybody, before, clock = all_cpu_seconds(), cpu_seconds(os.getpid()), time.process_time()
    while time.process_time() < clock + 0.05:
        pass
    assert cpu_seconds(os.getpid()) - before >= 0.04
    assert all_cpu_seconds() - everybody >= 0.03


def test_a_cluster_that_is_there_gives_one_client_for_all_numbers(client) -> None:
    with real(client.scheduler.address, None, 1) as (client_of, most):
        assert most == 2
        assert client_of(1) is client_of(2)
        assert len(client_of(1).nthreads()) == 2


def test_how_many_jobs_of_a_queue_there_will_be_has_to_be_said() -> None:
    with (
        pytest.raises(SettingsError, match=r"expected how many of queue.yaml .*give --workers N"),
        real("queue.yaml", None, 1),
    ):
        pass


def test_waiting_workers_are_as_many_as_are_measured(monkeypatch) -> None:
    there: list[tuple[int, int]] = []

    @contextmanager
    def cluster(workers, hosts):
        there.append((workers, hosts))
        yield SimpleNamespace(client=object())
        there.remove((workers, hosts))

    monkeypatch.setattr("daskdl.scaling.processes.cluster", cluster)
    with waiting(None) as (client_of, most):
        assert most == TOGETHER
        client_of(1)
        assert there == [(1, 1)]
        assert client_of(5 * TOGETHER) is client_of(5 * TOGETHER)
        assert there == [(5 * TOGETHER, max(5, min(5 * TOGETHER, available_cores())))]
    assert not there


def test_models_that_do_not_fit_are_told_before() -> None:
    check_memory(2, 1000)
    with pytest.raises(SettingsError, match=r"for 256 workers with 4e.06 MB of weights each"):
        check_memory(256, 10**12)
