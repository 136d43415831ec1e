"""``python -m tests.daskdl.train.processes KIND``: fits; prints digests of the weights.

For tests that need processes of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from multiprocessing import get_context

from daskdl.train import Callback, Trainer
from tests.daskdl.train.runs import On, digest, fit, problem

EPOCHS = 4


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


def cluster(workers: int = 2, wait: bool = False) -> None:
    """Fit on a cluster that this process starts."""
    from daskdl.cluster import connect

    with connect("local", workers=workers) as client:
        trainer = fit(problem(6), epochs=EPOCHS, client=client, callbacks=[Report(wait)])
    print(digest(trainer))


def watched() -> None:
    """Fit on a cluster, and wait for a line after each epoch."""
    cluster(wait=True)


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


KINDS: dict[str, Callable[[], None]] = {
    "cluster": cluster, "watched": watched, "forked": forked, "loky": loky,
}  # fmt: skip

if __name__ == "__main__":
    KINDS[sys.argv[1]]()
