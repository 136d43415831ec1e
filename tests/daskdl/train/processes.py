"""``python -m tests.daskdl.train.processes KIND ...``: fits; prints digests of the weights.

For tests that need processes of their own: :func:`started` starts one, :func:`digests` ends it.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import dask

from daskdl.train import Callback, Trainer
from tests.daskdl.clusters import SPAWN, small_client
from tests.daskdl.train.runs import On, digest, fit, problem

EPOCHS = 4
ROOT = Path(__file__).resolve().parents[3]


def started(kind: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Start a process of this module, which Ctrl-C of a terminal does not reach."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.daskdl.train.processes", kind, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment, cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def digests(process: subprocess.Popen[str]) -> list[str]:
    """Return the digests that a process printed."""
    out, error = process.communicate(timeout=500)
    assert process.returncode == 0, error
    return [line for line in out.splitlines() if not line.startswith("epoch")]


def fit_here(threads: int = 2) -> str:
    """Return the digest of a fit in this process."""
    return digest(fit(problem(6), epochs=EPOCHS, client=False, threads=threads))


class Report(Callback):
    """Prints each epoch that has ended; with ``wait``, waits for a line of input."""

    def __init__(self, wait: bool) -> None:
        self.wait = wait

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: object) -> None:
        print("epoch", epoch, os.getpid(), *self.pids(), flush=True)
        if self.wait:
            sys.stdin.readline()

    def pids(self) -> list[int]:
        from distributed import default_client

        return list(default_client().run(os.getpid, on_error="ignore").values())


def cluster(folder: str | None = None, workers: str = "2", wait: bool = False) -> None:
    """Fit on a cluster that this process starts, with checkpoints in a folder."""
    from daskdl.cluster import connect

    with connect("local", workers=int(workers)) as client:
        options = {"client": client, "callbacks": [Report(wait)], "checkpoint": folder}
        trainer = fit(problem(6), epochs=EPOCHS, **options)
    print(digest(trainer))


def watched(*options: str) -> None:
    """Fit on a cluster, and wait for a line after each epoch."""
    cluster(*options, wait=True)


def interrupted(folder: str, how: str) -> None:
    """Press Ctrl-C in a fit with checkpoints in a folder."""

    def press(trainer: Trainer) -> None:
        os.killpg(0, signal.SIGINT)  # as a terminal does
        time.sleep(1)

    # A program that starts in the background may ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = {"callbacks": [On(group=press)], "checkpoint": folder}
    if how == "on a cluster of its own":
        with small_client(2, processes=True, silence_logs=logging.CRITICAL) as client:
            fit(problem(), client=client, **options)
    fit(problem(), client=False, **options)


def forked() -> None:
    """Fit here, in processes forked after threads have worked here, and here again."""
    print(fit_here())
    with get_context("fork").Pool(2) as pool:
        print(*pool.map(fit_here, [2, 3]), sep="\n")
    print(fit_here())


def loky() -> None:
    """Fit in joblib's processes, and run joblib's processes during a fit."""
    from joblib import Parallel, delayed

    print(*Parallel(n_jobs=2, backend="loky")([delayed(fit_here)() for _ in range(2)]), sep="\n")

    def work(trainer: Trainer) -> None:
        assert Parallel(n_jobs=2)(delayed(abs)(-i) for i in range(4)) == [0, 1, 2, 3]

    print(digest(fit(problem(6), epochs=EPOCHS, client=False, callbacks=[On(epoch=work)])))


KINDS: dict[str, Callable[..., None]] = {
    "cluster": cluster, "watched": watched, "forked": forked, "loky": loky,
    "interrupted": interrupted,
}  # fmt: skip

if __name__ == "__main__":
    dask.config.set(SPAWN)  # as a user's program starts workers
    KINDS[sys.argv[1]](*sys.argv[2:])
