"""A fit next to other programs: a second cluster, joblib, pytest-xdist, a fork, a full memory.

All use real processes; the weights have the bits of a fit that runs alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from tests.daskdl.clusters import small_client
from tests.daskdl.train.processes import EPOCHS, ROOT, digests, fit_here, started
from tests.daskdl.train.runs import Once, digest, fit, problem

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def test_two_clusters_on_one_machine():
    whole = fit_here()
    assert [digests(p) for p in [started("cluster"), started("cluster")]] == [[whole], [whole]]


def test_joblib_around_a_fit_and_during_it():
    pytest.importorskip("joblib")
    assert digests(started("loky")) == 3 * [fit_here()]


def test_a_fork_after_threads_have_worked():
    assert digests(started("forked")) == 4 * [fit_here()]


def test_fits_in_the_processes_of_xdist(tmp_path):
    pytest.importorskip("xdist")
    (tmp_path / "test_fits.py").write_text(
        "import pytest\n"
        "from daskdl.cluster import connect\n"
        "from tests.daskdl.train.processes import EPOCHS, ROOT, digests, fit_here, started\n"
        "from tests.daskdl.train.runs import digest, fit, problem\n"
        "@pytest.mark.parametrize('i', range(4))\n"
        "def test_here(i):\n"
        f"    assert fit_here(1 + i) == {fit_here()!r}\n"
        "@pytest.mark.parametrize('i', range(2))\n"
        "def test_there(i):\n"
        "    with connect('local', workers=2) as client:\n"
        "        result = digest(fit(problem(6), epochs=EPOCHS, client=client))\n"
        f"    assert result == {fit_here()!r}\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "."]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=500,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "6 passed" in done.stdout, done.stdout + done.stderr


def fill() -> None:
    """Take more memory than the worker may have, and wait to be killed for it."""
    memory = np.ones(160_000_000)
    threading.Event().wait(60)
    del memory


@pytest.mark.parametrize("engine", ["graph", "gang"])
def test_a_worker_that_its_nanny_kills_for_its_memory(tmp_path, engine):
    samples = problem(6).map(Once(tmp_path / "filled", 20, fill))
    with small_client(2, default=True, processes=True, memory_limit="1 GB") as client:
        before = client.run(os.getpid)
        result = digest(fit(samples, epochs=EPOCHS, client=client, engine=engine))
        after = client.run(os.getpid)
    assert (tmp_path / "filled").exists()
    assert set(before.values()) - set(after.values())
    assert result == fit_here()
