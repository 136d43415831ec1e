"""Measuring one number of workers: a short fit to warm up, and one of about so many seconds."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from daskdl.scaling.processes import all_cpu_seconds
from daskdl.scaling.split import split
from daskdl.scaling.workloads import Workload, synthetic
from daskdl.train import Callback, Trainer

if TYPE_CHECKING:
    from distributed import Client

    from daskdl.train import History

#: Iterations of the fit that warms up: it compiles, connects, and tells how long one takes.
WARM_UP = 3

#: Fewest and most iterations that are timed.
LEAST, MOST = 6, 2000

#: Iterations of the first two groups, which are not: groups grow fourfold.
GROWING = 5

#: Samples of an epoch, at most: the driver keeps a number for each.
EPOCH = 4_000_000

#: Batches of a worker that are drawn.
HELD = 4


@dataclass(frozen=True)
class Run:
    """Times of an iteration on so many workers.

    Attributes
    ----------
    workers : int
    batch : int
        Samples of an iteration, of all workers together.
    iterations : int
        That were timed.
    seconds : float
        Of one iteration, from the wall clock of the process that called fit.
    parts : dict
        The seconds of each of :data:`~daskdl.scaling.split.PARTS`, whose sum that is.
    busy : float, optional
        Part of this machine's cores that was at work, for whomever, if all workers are on it.
    """

    workers: int
    batch: int
    iterations: int
    seconds: float
    parts: dict[str, float]
    busy: float | None = None

    @property
    def rate(self) -> float:
        """Samples per second."""
        return self.batch / self.seconds


class Stopwatch(Callback):
    """Notes when groups of iterations end, and how long all cores have worked."""

    def __init__(self) -> None:
        self.marks: list[tuple[int, float, float]] = []

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        """Note."""
        self.marks.append((iteration, time.perf_counter(), all_cpu_seconds()))


def measured(
    client: Client,
    workload: Workload,
    workers: int,
    batch: int,
    seconds: float,
    *,
    engine: str = "auto",
    wire: str = "float32",
) -> Run:
    """Train on some workers of a cluster and return the times of an iteration.

    Each worker has one shard, so that as many take part as there are shards: the first of the
    cluster's by address.

    Parameters
    ----------
    client : distributed.Client
    workload : Workload
    workers : int
        No more than the cluster has.
    batch : int
        Samples of an iteration, of all workers together; at least one each.
    seconds : float
        That the timed iterations take together, about.
    engine, wire :
        As in :meth:`daskdl.train.Trainer.fit`.
    """

    def fitted(iterations: int, watch: Stopwatch) -> History:
        model, loss, method = workload.build()
        long = min(iterations, max(1, EPOCH // batch)) * batch
        lengths = [long // workers + (i < long % workers) for i in range(workers)]
        samples = synthetic(workload.draw, lengths, HELD * -(-batch // workers))
        return Trainer(model, loss, method).fit(
            samples,
            iterations=iterations,
            batch_size=batch,
            client=client,
            engine=engine,
            wire=wire,
            callbacks=[watch],
            progress=False,
        )

    last = float(fitted(WARM_UP, Stopwatch())["seconds"][-1])
    count = max(LEAST, min(MOST, round(seconds / max(last, 1e-9))))
    watch = Stopwatch()
    history = fitted(GROWING + count, watch)
    (first, began, before), (end, ended, after) = watch.marks[1], watch.marks[-1]
    took = ended - began
    return Run(
        workers,
        batch,
        end - first,
        took / (end - first),
        split(history, [mark[0] for mark in watch.marks[1:-1]], took),
        (after - before) / took / (os.cpu_count() or 1) if _here(client) else None,
    )


def _here(client: Client) -> bool:
    """Return whether all workers are on this machine."""
    return all("://127." in address for address in client.nthreads())
