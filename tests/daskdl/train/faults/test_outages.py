"""Runs whose scheduler is killed, and runs on a cluster that encrypts all it sends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client
from distributed.security import Security

from daskdl.cluster import connect
from daskdl.errors import ClusterError
from tests.daskdl.clusters import small_client
from tests.daskdl.train.runs import Do, Once, die, digest, fit, iterations_in, problem

ROOT = Path(__file__).resolve().parents[4]


# --- a scheduler that is killed


def start(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start the program of ``dask scheduler`` or of ``dask worker``."""
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{program}", "--no-dashboard", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextlib.contextmanager
def cluster(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a scheduler and two workers; yield the scheduler."""
    where = ("--scheduler-file", str(file))
    worker = ("dask_worker", "--nthreads=1", "--no-nanny", *where)
    local = ("--local-directory", str(file.parent))
    processes = [
        start("dask_scheduler", "--host=127.0.0.1", "--port=0", *where),
        start(*worker, *local),  # it waits for the file
        start(*worker, *local),
    ]
    limit = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < limit, "no scheduler came"
        time.sleep(0.02)
    try:
        yield processes[0]
    finally:
        for process in processes:
            process.kill()
            process.wait(30)


@pytest.mark.kills
@pytest.mark.parametrize("engine", [pytest.param("graph", marks=pytest.mark.long), "gang"])
@pytest.mark.usefixtures("short_groups")
def test_a_run_whose_scheduler_was_killed_goes_on_by_the_same_command(
    client, tmp_path, undisturbed, engine
):
    file, folder = tmp_path / "scheduler.json", tmp_path / "run"

    def command(*callbacks):
        options = {"checkpoint": folder, "checkpoint_every": 4, "callbacks": callbacks}
        with connect(file) as client:
            client.wait_for_workers(2, timeout=60)
            return fit(problem(), client=client, engine=engine, **options)

    with cluster(file) as scheduler:
        kill = Do(10, scheduler.kill)
        text = r"^iterations \d+ to \d+: the scheduler at tcp://\S+ does not answer .* checkpoint"
        with pytest.raises(ClusterError, match=text):
            command(kill)
    assert kill.done
    assert iterations_in(folder)[-1] >= 8
    file.write_text(json.dumps({"address": client.scheduler.address}))
    again = command()
    assert digest(again) == undisturbed
    assert len(again.history) == 21


# --- TLS


@pytest.fixture(scope="module")
def safe() -> Iterator[Client]:
    """Two workers that speak TLS only."""
    pytest.importorskip("cryptography")
    tls = {"protocol": "tls://", "security": Security.temporary()}
    with small_client(2, processes=True, **tls) as client:
        yield client


@pytest.mark.kills
def test_a_killed_worker_of_a_cluster_with_tls_changes_nothing(safe, tmp_path, undisturbed):
    safe.wait_for_workers(2, timeout=60)
    assert all(address.startswith("tls://") for address in safe.nthreads())
    samples = problem().map(Once(tmp_path / "died", 20, die))
    assert digest(fit(samples, client=safe, engine="gang")) == undisturbed
    assert (tmp_path / "died").exists()
