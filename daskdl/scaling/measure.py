"""Measuring: where an iteration's time goes, on one number of workers and on more and more."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from daskdl.scaling.processes import all_cpu_seconds
from daskdl.scaling.workloads import Workload, synthetic
from daskdl.train import Callback, Trainer

if TYPE_CHECKING:
    from distributed import Client

    from daskdl.train import History


#: Parts of an iteration of a worker, on average over the workers. Idle is waiting for others: for
#: the slowest worker's gradient, and whatever has no clock amid a group of iterations, as when the
#: operating system lets others compute. Scheduling is what driver, scheduler and their messages
#: take between groups; with the graph engine it is all that has no clock, since reduction and
#: broadcast are messages of Dask's there.
PARTS = ("data", "forward", "backward", "reduce", "update", "broadcast", "scheduling", "idle")

#: Parts that are one worker's own work.
WORK = ("data", "forward", "backward", "update")


def split(history: History, groups: Sequence[int], seconds: float) -> dict[str, float]:
    """Return the mean seconds of each of :data:`PARTS` in an iteration.

    Of the iterations those count from the first of ``groups`` on, the iterations with which groups
    begin; they took so many seconds together, with what is between groups. The sum is these seconds
    over their number.
    """
    first, count = groups[0], len(history) - groups[0]
    clocks = {name: float(history[name][first:].sum()) for name in PARTS if name != "scheduling"}
    if clocks["reduce"] > 0:  # a gang's
        wait = history["wait"][first:]
        begins = np.isin(np.arange(first, len(history)), groups)
        usual = float(wait[~begins].mean()) if not begins.all() else 0.0
        clocks["idle"] += float(np.where(begins, np.minimum(wait, usual), wait).sum())
    known = sum(clocks.values())
    # Phases of different workers may overlap a little; nothing is left between them then.
    scale = min(1.0, seconds / known) if known else 1.0
    clocks = {name: scale * value for name, value in clocks.items()}
    clocks["scheduling"] = seconds - sum(clocks.values())
    return {name: max(0.0, clocks[name]) / count for name in PARTS}


def counts(first: int, last: int) -> list[int]:
    """Return numbers of workers from ``first`` to ``last``, each twice the one before."""
    numbers = []
    while first < last:
        numbers.append(first)
        first *= 2
    return [*numbers, last]


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
    """Times of an iteration on so many workers, which have so many samples together.

    Seconds are of one of the iterations that were timed, by the wall clock of the process that
    called fit; ``parts`` are those of each of :data:`PARTS`, whose sum that is. ``busy`` is the
    part of this machine's cores that was at work, for whomever, if all workers are on it.
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
    cluster's by address. The batch is that of all workers together, at least one sample each; the
    timed iterations take so many seconds together, about.
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


#: From workers, and samples of an iteration of all of them together, to a run.
Measure = Callable[[int, int], Run]


@dataclass(frozen=True)
class Row:
    """A run, and how it compares with that on the fewest workers.

    In "weak" scaling each worker has as many samples as there, in "strong" all together have.
    """

    scaling: str
    run: Run
    efficiency: float


def planned(counts: Sequence[int], batch: int, total: int) -> list[tuple[str, int, int]]:
    """Return scaling, workers and samples of every row, for these numbers of workers.

    In the weak rows each worker has ``batch`` samples, in the strong ones all together ``total``;
    there is none where not every worker would have one.
    """
    both = [(kind, n, m) for n in counts for kind, m in (("weak", n * batch), ("strong", total))]
    return [(kind, n, samples) for kind, n, samples in both if samples >= n]


def sweep(measure: Measure, plan: Sequence[tuple[str, int, int]]) -> Iterator[Row]:
    """Yield each row of a plan when it is measured; rows of the same run are measured once.

    Efficiencies are what a worker gets done beside the first row of the same scaling.
    """
    runs: dict[tuple[int, int], Run] = {}
    base: dict[str, Run] = {}
    for scaling, workers, samples in plan:
        if (workers, samples) not in runs:
            runs[workers, samples] = measure(workers, samples)
        run = runs[workers, samples]
        first = base.setdefault(scaling, run)
        yield Row(scaling, run, run.rate / run.workers / (first.rate / first.workers))
