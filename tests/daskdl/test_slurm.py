"""Training in jobs of a real Slurm, as ci/slurm.sh starts one; a cancelled job is replaced."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from daskdl.cluster import configuration, connect
from daskdl.cluster.undisturbed import PROFILED
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


pytestmark = [
    pytest.mark.kills,
    pytest.mark.skipif(not has_slurm(), reason="needs a Slurm: run it by ci/slurm.sh"),
]


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
    """Cancels a job in mid-run, and some groups later waits for the one in its place."""

    def __init__(self) -> None:
        self.cancelled = ""
        self.found: list[str] = []

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        if not self.cancelled:
            self.cancelled = jobs()[0]
            subprocess.run(["scancel", self.cancelled], check=True)
        elif not self.found and iteration >= 12:
            limit = time.monotonic() + 60
            while len(found := jobs()) < 2 or self.cancelled in found:
                assert time.monotonic() < limit, f"no new job after a minute, only {found}"
                time.sleep(0.2)
            self.found = found


def _between_looks(dask_worker: Any) -> float:
    """Return the milliseconds between two looks of a worker's profiler."""
    return dask_worker.periodic_callbacks["profile"].callback_time


@pytest.mark.parametrize("engine", ["graph", "gang"])
def test_a_cancelled_job_is_replaced_and_changes_no_bit(queue: Path, engine: str) -> None:
    expected = digest(fit(problem()))
    cancel = CancelOne()
    with connect(queue) as client:
        client.wait_for_workers(2, timeout=120)
        looks = client.run(_between_looks)
        assert set(looks.values()) == {PROFILED}
        trainer = fit(problem(), client=client, engine=engine, callbacks=[cancel])
    assert digest(trainer) == expected
    assert cancel.found
    limit = time.monotonic() + 60
    while jobs():
        assert time.monotonic() < limit, "jobs are left behind"
        time.sleep(0.2)
