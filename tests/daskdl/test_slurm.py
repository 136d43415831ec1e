"""Job queues: the scripts of jobs, and a real cluster of Slurm."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from daskdl.cluster import connect
from daskdl.cluster.starting import workers as configuration
from daskdl.cluster.starting.queue import QUEUES, queue_options
from daskdl.cluster.starting.workers import PROFILED
from daskdl.train import Callback, Trainer
from tests.daskdl.train.runs import digest, fit, problem


def jobs() -> list[str]:
    """Return the ids of all jobs that wait or run."""
    return subprocess.run(
        ["squeue", "--noheader", "--format=%i"], check=True, capture_output=True, text=True
    ).stdout.split()


def has_slurm() -> bool:
    return (
        shutil.which("sinfo") is not None
        and not subprocess.run(["sinfo"], check=False, capture_output=True, timeout=30).returncode
    )


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("dask_jobqueue")
    quick = {**configuration.QUEUE_CONFIG, "distributed.deploy.lost-worker-timeout": "2 s"}
    monkeypatch.setattr(configuration, "QUEUE_CONFIG", quick)
    path = tmp_path / "queue.yaml"
    path.write_text(
        "system: slurm\njobs: 2\ncores: 1\nprocesses: 1\nmemory: 2GB\ninterface: lo\n"
        f"walltime: 00:10:00\nlocal_directory: {tmp_path}\nlog_directory: {tmp_path}\n"
    )
    return path


class CancelOne(Callback):
    """Cancels a job in mid-run, and some groups later waits for the job that replaces it."""

    def __init__(self) -> None:
        self.cancelled = ""
        self.running: list[str] = []

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        if not self.cancelled:
            self.cancelled = jobs()[0]
            subprocess.run(["scancel", self.cancelled], check=True)
        elif not self.running and iteration >= 12:
            limit = time.monotonic() + 60
            while len(running := jobs()) < 2 or self.cancelled in running:
                assert time.monotonic() < limit, f"no new job after a minute, only {running}"
                time.sleep(0.2)
            self.running = running


def _profile_interval(dask_worker: Any) -> float:
    """Return the milliseconds between two samples of a worker's profiler."""
    return dask_worker.periodic_callbacks["profile"].callback_time


@pytest.mark.kills
@pytest.mark.skipif(not has_slurm(), reason="needs a Slurm: run it by ci/slurm.sh")
@pytest.mark.parametrize("engine", ["graph", "gang"])
def test_a_cancelled_job_is_replaced_and_changes_no_bit(queue: Path, engine: str) -> None:
    expected = digest(fit(problem()))
    cancel = CancelOne()
    with connect(queue) as client:
        client.wait_for_workers(2, timeout=120)
        intervals = client.run(_profile_interval)
        assert set(intervals.values()) == {PROFILED}
        trainer = fit(problem(), client=client, engine=engine, callbacks=[cancel])
    assert digest(trainer) == expected
    assert cancel.running
    limit = time.monotonic() + 60
    while jobs():
        assert time.monotonic() < limit, "jobs are left behind"
        time.sleep(0.2)


def options_of(tmp_path, text):
    path = tmp_path / "queue.yaml"
    path.write_text(text)
    return queue_options(path)


def test_walltimes_of_lsf_are_hours_and_minutes(tmp_path):
    options = options_of(tmp_path, "system: lsf\nwalltime: 12:00")
    assert options["walltime"] == "12:00"
    assert options["worker_extra_args"][:2] == ["--lifetime", "42900s"]


@pytest.mark.parametrize(
    ("system", "walltime", "lines"),
    [
        ("slurm", "02:00:00", ["#SBATCH --cpus-per-task=4", "#SBATCH -t 02:00:00"]),
        ("pbs", "02:00:00", ["#PBS -l select=1:ncpus=4:mem=7630MB", "#PBS -l walltime=02:00:00"]),
        ("lsf", "02:00", ["#BSUB -n 4", "#BSUB -W 02:00"]),
        ("sge", "02:00:00", ["#$ -l h_rt=02:00:00", "#$ -q main"]),
    ],
)
def test_the_job_script_of_each_queue(system, walltime, lines, tmp_path):
    dask_jobqueue = pytest.importorskip("dask_jobqueue")
    options = options_of(
        tmp_path,
        f"system: {system}\ncores: 4\nprocesses: 1\nmemory: 8GB\ninterface: lo\n"
        f"queue: main\nlocal_directory: {tmp_path}\nwalltime: {walltime}\n"
        "job_script_prologue: [module load radar]\n",
    )
    kind = getattr(dask_jobqueue, QUEUES[options.pop("system")]).job_cls
    text = kind(scheduler="tcp://node1:8786", name="a", **options).job_script()
    for line in lines:
        assert re.search(rf"^{re.escape(line)}\s*$", text, re.MULTILINE), text
    for option in (
        "--nthreads 4",
        "--interface lo",
        f"--local-directory {tmp_path}",
        "--lifetime 6900s",
        "--lifetime-stagger 150s",
        "\nmodule load radar\n",
    ):
        assert option in text
