"""The command, the machine that it describes, and the processes on which it measures."""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import contextmanager
from types import SimpleNamespace

import psutil
import pytest

from daskdl.errors import SettingsError
from daskdl.kernels.runtime.threads import available_cores
from daskdl.scaling.command import Settings, machine, machines, run, title
from daskdl.scaling.processes import (
    TOGETHER,
    Process,
    all_cpu_seconds,
    check_memory,
    cluster,
    real,
    waiting,
)
from daskdl.scaling.workloads import workload


@pytest.mark.long
def test_waiting_workers_take_the_time_of_their_waiting(tmp_path, capsys) -> None:
    file, picture = tmp_path / "rows.json", tmp_path / "rows.png"
    settings = Settings(
        "lenet", total_batch=64, simulate=0.02, megabytes=0.5, first=2, workers=2, seconds=0.1
    )
    rows = run(settings, file, picture, progress=True)
    assert [(row.scaling, row.run.batch) for row in rows] == [("weak", 128), ("strong", 64)]
    for row, waits in zip(rows, (0.02, 0.01), strict=True):
        parts = row.run.parts
        assert waits <= parts["forward"] + parts["backward"] <= row.run.seconds
    report = json.loads(file.read_text())
    assert report["settings"]["simulate"] == 0.02
    assert report["machines"][0]["workers"] == 2
    assert report["megabytes"] == 0.5
    assert len(report["rows"]) == 2
    assert picture.read_bytes().startswith(b"\x89PNG")
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert out.startswith("a gradient of 0.5 MB, 0.02 s of waiting")
    assert "run 2 of 2: 2 workers, 64 samples an iteration" in err


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"model": "vgg"}, "model: expected one of lenet"),
        ({"engine": "steam"}, "engine: expected one of auto"),
        ({"wire": "int8"}, "wire"),
        ({"first": 4, "workers": 2, "simulate": 0.0}, "first: expected at most 2 workers, found 4"),
        ({"workers": 9999, "simulate": 0.0, "megabytes": 1000.0}, "of free memory for 9999"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_measured(wrong, sentence, capsys) -> None:
    with pytest.raises(SettingsError, match=sentence):
        run(Settings(**{"model": "lenet", **wrong}))
    assert capsys.readouterr().out == ""


def test_a_model_is_trained_with_the_batch_that_is_asked_for() -> None:
    assert Settings("lenet").workload() == workload("lenet")
    assert Settings("lenet", batch_size=5).workload().batch == 5
    assert not Settings("lenet").waits


def test_a_simulated_model_has_the_models_size_or_another() -> None:
    model, _, _ = Settings("lenet", simulate=0.0).workload().build()
    assert model.vector.size == Settings("lenet").numbers() == 61_706
    model, _, _ = Settings("lenet", simulate=0.0, megabytes=2).workload().build()
    assert model.vector.nbytes == 2_000_000
    assert Settings("lenet", simulate=1.0).waits
    assert not Settings("lenet", cluster="tcp://host:8786", simulate=1.0).waits


def test_only_a_simulated_model_has_another_size() -> None:
    with pytest.raises(SettingsError, match="megabytes: expected only with --simulate, found 3"):
        Settings("lenet", megabytes=3).workload()


def test_a_simulated_run_is_named_by_its_gradient():
    facts = [{"hosts": 1, "processor": "cpu"}]
    assert title(Settings("lenet"), facts) == "lenet: 1 x cpu"
    name = title(Settings("inception", simulate=1.5, megabytes=0.1), facts)
    assert name == "a gradient of 0.1 MB, 1.5 s of waiting: 1 x cpu"


def test_a_machine_is_described_without_its_name() -> None:
    facts = machine()
    assert facts["cores"] >= 1
    assert facts["memory (GB)"] > 0
    assert facts["processor"]
    assert {"daskdl", "numpy", "distributed"} <= facts["packages"].keys()
    assert facts["libraries"]
    assert platform.node() not in json.dumps(facts).replace(facts["processor"], "")


def test_equal_hosts_are_described_once(client) -> None:
    (facts,) = machines(client)
    assert (facts["hosts"], facts["workers"]) == (1, 2)
    assert facts["processor"] == machine()["processor"]


@pytest.mark.slow
def test_a_cluster_of_processes_ends_with_the_benchmark():
    with cluster(3, 2) as processes:
        pids = processes.client.run(os.getpid)
        assert sorted(pids.values()).count(processes.hosts[0].id) == 2
        assert set(pids.values()) == {host.id for host in processes.hosts}
        assert processes.client.run_on_scheduler(os.getpid) == processes.scheduler.id
    for process in (processes.scheduler, *processes.hosts):
        assert not psutil.pid_exists(process.id)


def test_cpu_seconds_are_summed_over_all_threads():
    me = Process(os.getpid(), "")
    everybody, before, clock = all_cpu_seconds(), me.cpu_seconds(), time.process_time()
    while time.process_time() < clock + 0.05:
        pass
    assert me.cpu_seconds() - before >= 0.04
    assert all_cpu_seconds() - everybody >= 0.03


def test_an_existing_cluster_gives_one_client_for_all_numbers(client) -> None:
    with real(client.scheduler.address, None, 1) as (client_of, most):
        assert most == 2
        assert client_of(1) is client_of(2)
        assert len(client_of(1).nthreads()) == 2


def test_a_queue_needs_a_number_of_workers() -> None:
    with (
        pytest.raises(SettingsError, match=r"expected how many of queue.yaml .*give --workers N"),
        real("queue.yaml", None, 1),
    ):
        pass


def test_waiting_workers_are_as_many_as_are_measured(monkeypatch) -> None:
    running: list[tuple[int, int]] = []

    @contextmanager
    def cluster(workers, hosts):
        running.append((workers, hosts))
        yield SimpleNamespace(client=object())
        running.remove((workers, hosts))

    monkeypatch.setattr("daskdl.scaling.processes.cluster", cluster)
    with waiting(None) as (client_of, most):
        assert most == TOGETHER
        client_of(1)
        assert running == [(1, 1)]
        assert client_of(5 * TOGETHER) is client_of(5 * TOGETHER)
        assert running == [(5 * TOGETHER, max(5, min(5 * TOGETHER, available_cores())))]
    assert not running


def test_models_that_do_not_fit_are_refused() -> None:
    check_memory(2, 1000)
    with pytest.raises(SettingsError, match=r"for 256 workers with 4e.06 MB of weights each"):
        check_memory(256, 10**12)
