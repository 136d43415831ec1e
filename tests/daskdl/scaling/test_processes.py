from __future__ import annotations

import os
import time

import psutil
import pytest

from daskdl.scaling.processes import all_cpu_seconds, cluster, cpu_seconds


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
