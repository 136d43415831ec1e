"""Measure an iteration's time and its parts, on growing numbers of workers."""

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


#: Parts of an iteration of a worker, on average over the workers. "idle" is waiting for others: for
#: the slowest worker's gradient, and time within a group of iterations that no clock measures, as
#: when the operating system runs other processes. "scheduling" is the time of driver, scheduler and
#: their messages between groups; with the graph engine it is all unmeasured time, since reduction
#: and broadcast are Dask's messages there.
PARTS = ("data", "forward", "backward", "reduce", "update", "broadcast", "scheduling", "idle")

#: Parts that are one worker's own work.
WORK = ("data", "forward", "backward", "update")


def split(history: History, groups: Sequence[int], seconds: float) -> dict[str, float]:
    """Return the mean seconds of each of :data:`PARTS` in an iteration.

    ``groups`` are the first iterations of groups; iterations count from the first of these on. They
    took ``seconds`` together, with the time between groups. The sum of the parts is ``seconds``
    over the number of iterations.
    """
    first, count = groups[0], len(history) - groups[0]
    clocks = {name: float(history[name][first:].sum()) for name in PARTS if name != "scheduling"}
    if clocks["reduce"] > 0:  # gang engine
        wait = history["wait"][first:]
        begins = np.isin(np.arange(first, len(history)), groups)
        usual = float(wait[~begins].mean()) if not begins.all() else 0.0
        clocks["idle"] += float(np.where(begins, np.minimum(wait, usual), wait).sum())
    known = sum(clocks.values())
    # Phases of different workers may overlap; then scale them to the measured seconds.
    scale = min(1.0, seconds / known) if known else 1.0
    clocks = {name: scale * value for name, value in clocks.items()}
    clocks["scheduling"] = seconds - sum(clocks.values())
    return {name: max(0.0, clocks[name]) / count for name in PARTS}


def counts(first: int, last: int) -> list[int]:
    """Return numbers of workers from ``first`` to ``last``, doubling each time."""
    numbers = []
    while first < last:
        numbers.append(first)
        first *= 2
    return [*numbers, last]


#: Iterations of the warm-up fit: it compiles, connects, and estimates the time of an iteration.
WARM_UP = 3

#: Least and largest number of timed iterations.
LEAST, MOST = 6, 2000

#: Iterations of the first two groups, which are not timed: groups grow fourfold.
GROWING = 5

#: Largest number of samples in an epoch: the driver keeps a number for each.
EPOCH = 4_000_000

#: Number of batches that each worker draws and repeats.
DRAWN = 4


@dataclass(frozen=True)
class Run:
    """Times of an iteration on ``workers`` with a total of ``batch`` samples.

    ``seconds`` is the mean of the timed iterations, by the wall clock of the process that called
    fit; ``parts`` splits it by :data:`PARTS`. ``busy`` is the share of this machine's cores at
    work, for any process; it is None unless all workers are on this machine.
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
    """Records the end of each group of iterations, and the CPU seconds of all cores."""

    def __init__(self) -> None:
        self.marks: list[tuple[int, float, float]] = []

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        """Record the iteration, the wall clock and the CPU seconds."""
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

    Each worker has one shard; the first ``workers`` of the cluster, by address, take part.
    ``batch`` is the total over the workers, at least one sample each. All timed iterations together
    take about ``seconds``.
    """

    def fitted(iterations: int, watch: Stopwatch) -> History:
        model, loss, method = workload.build()
        long = min(iterations, max(1, EPOCH // batch)) * batch
        lengths = [long // workers + (i < long % workers) for i in range(workers)]
        samples = synthetic(workload.draw, lengths, DRAWN * -(-batch // workers))
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


#: From workers, and their total of samples per iteration, to a run.
Measure = Callable[[int, int], Run]


@dataclass(frozen=True)
class Row:
    """A run, and its efficiency relative to the run on the fewest workers.

    In "weak" scaling the samples per worker stay the same, in "strong" scaling the total.
    """

    scaling: str
    run: Run
    efficiency: float


def planned(counts: Sequence[int], batch: int, total: int) -> list[tuple[str, int, int]]:
    """Return scaling, workers and samples of every row, for these numbers of workers.

    In weak rows each worker has ``batch`` samples; in strong rows all workers share ``total``. Rows
    with fewer samples than workers are left out.
    """
    both = [(kind, n, m) for n in counts for kind, m in (("weak", n * batch), ("strong", total))]
    return [(kind, n, samples) for kind, n, samples in both if samples >= n]


def sweep(measure: Measure, plan: Sequence[tuple[str, int, int]]) -> Iterator[Row]:
    """Yield each row of a plan once it is measured; rows of the same run are measured once.

    Efficiency is the samples per second and worker, relative to the first row of the same scaling.
    """
    runs: dict[tuple[int, int], Run] = {}
    base: dict[str, Run] = {}
    for scaling, workers, samples in plan:
        if (workers, samples) not in runs:
            runs[workers, samples] = measure(workers, samples)
        run = runs[workers, samples]
        first = base.setdefault(scaling, run)
        yield Row(scaling, run, run.rate / run.workers / (first.rate / first.workers))
