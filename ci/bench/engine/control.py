"""Cost of control at many workers: ``python -m ci.bench.engine.control``, with waits for computing.

All workers are on this machine, many in one process and each with one thread, and wait in the
forward pass; they exchange a vector of 16 numbers a worker. So wall time says little beyond a few
workers. The CPU seconds of scheduler and driver for an iteration are the same anywhere, and as all
workers wait for both, their sum is the cost. The scheduler's time for heartbeats of as many idle
workers is shown, and does not count.

The members of a gang stay for ``daskdl.turn-time``. A row "gang" is of groups whose members stay,
"forms" of groups that each form a new gang; the cost of a gang is the mean over the groups of a
turn, whose first one forms it. Other programs on the machine raise all figures: the last column has
their share.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import dask
import numpy as np

from ci.bench.timing import write_json
from daskdl.cluster.settings import seconds as duration
from daskdl.collective.payload import UNIT
from daskdl.data import SampleSet
from daskdl.nn import MSELoss
from daskdl.optim import SGD
from daskdl.scaling.processes import Process, Processes, all_cpu_seconds, cluster
from daskdl.scaling.workloads import Waiting
from daskdl.train import Callback, Trainer

#: Seconds that the members of a gang stay.
TURN = duration("turn-time")

#: Seconds to look at a cluster at rest; with many workers each sends a heartbeat every 5 s.
SETTLE = 6.0

#: Workers in one process, at most.
TOGETHER = 32


@dataclass(frozen=True)
class Row:
    """One engine at one number of workers; milliseconds of an iteration."""

    engine: str
    workers: int
    iterations: float  #: in a group, on average
    scheduler: float  #: CPU
    driver: float  #: CPU
    idle: float  #: CPU of the scheduler in the same time without a fit: heartbeats
    part: float  #: CPU of scheduler, without heartbeats, and driver as a share of the time waited
    others: float  #: share of all cores' time that other programs took

    def __str__(self) -> str:
        return (
            f"{self.engine:<6} {self.workers:>7} {self.iterations:>5.1f} {self.scheduler:>9.2f} "
            f"{self.driver:>8.2f} {self.idle:>8.2f} {100 * self.part:>8.2f} "
            f"{100 * self.others:>7.0f}"
        )


#: ``turn-time`` for the two kinds of groups of gangs.
TURNS = {"gang": "1 hour", "forms": "0 s"}

HEADER = (
    f"{'engine':<6} {'workers':>7} {'K':>5} {'scheduler':>9} {'driver':>8} {'idle':>8} "
    f"{'control%':>8} {'others%':>7}"
)


class Meter(Callback):
    """Reads the CPU clocks of all processes at the end of every group."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self.at: list[int] = []
        self.clocks: list[tuple[float, float, float, float, float]] = []

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        """Read the clocks."""
        self.at.append(iteration)
        self.clocks.append(
            (
                self._processes.scheduler.cpu_seconds(),
                Process(os.getpid(), "").cpu_seconds(),
                sum(host.cpu_seconds() for host in self._processes.hosts),
                time.perf_counter(),
                all_cpu_seconds(),
            )
        )

    def spent(self, first: int) -> tuple[int, int, list[float]]:
        """Return the groups, iterations and seconds of each clock after iteration ``first``."""
        begin = self.at.index(first)
        spent = np.subtract(self.clocks[-1], self.clocks[begin]).tolist()
        return len(self.at) - 1 - begin, self.at[-1] - first, spent


def measured(processes: Processes, engine: str, workers: int, options: argparse.Namespace) -> Row:
    """Fit with waiting workers and return the row, without the first groups, which are short."""
    k, seconds, settle = options.k, options.seconds, options.settle
    x = np.ones((k * workers, 4), np.float32)
    samples = SampleSet.from_arrays(x=x, y=x, partitions=workers)
    meter = Meter(processes)
    time.sleep(settle)
    idle = processes.scheduler.cpu_seconds()
    time.sleep(settle)
    idle = (processes.scheduler.cpu_seconds() - idle) / settle if settle else 0.0
    # An epoch is as long as a group may be, so that all groups after the first have k iterations.
    turn = TURNS.get(engine, "0 s")
    with dask.config.set({"daskdl.group-time": "1 hour", "daskdl.turn-time": turn}):
        Trainer(Waiting(UNIT * workers, seconds), MSELoss(), SGD(0.01)).fit(
            samples,
            iterations=k * (options.groups + 1),
            batch_size=workers,
            engine="gang" if engine in TURNS else engine,
            client=processes.client,
            callbacks=[meter],
            progress=False,
        )
    count, iterations, (scheduler, driver, hosts, wall, everybody) = meter.spent(k)
    ms = 1000 / iterations
    idle *= wall
    return Row(
        engine,
        workers,
        iterations / count,
        ms * scheduler,
        ms * driver,
        ms * idle,
        (scheduler - idle + driver) / iterations / seconds,
        max(0.0, everybody - scheduler - driver - hosts) / wall / (os.cpu_count() or 1),
    )


def of_a_turn(rows: Sequence[Row], seconds: float) -> dict[int, float]:
    """Return by workers the cost of a gang over a turn, as a share of an iteration's time."""
    by_kind = {(row.engine, row.workers): row for row in rows}
    shares = {}
    for (engine, workers), row in by_kind.items():
        forms = by_kind.get(("forms", workers))
        if engine == "gang" and forms is not None:
            groups = max(1.0, TURN / (row.iterations * seconds))
            shares[workers] = max(0.0, row.part) + (forms.part - max(0.0, row.part)) / groups
    return shares


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", nargs="+", default=["gang", "forms", "graph"])
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 8, 32, 64, 128, 256])
    parser.add_argument("--seconds", type=float, default=1.5, help="that an iteration waits")
    parser.add_argument("-k", "--k", type=int, default=10, help="iterations of a gang's group")
    parser.add_argument("--groups", type=int, default=2, help="to measure")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--settle", type=float, default=SETTLE, help="seconds to look at rest")
    options = parser.parse_args(arguments)
    print(HEADER)
    rows: list[Row] = []
    for n, engine in product(options.workers, options.engines):
        with cluster(n, -(-n // TOGETHER)) as processes:
            rows.append(measured(processes, engine, n, options))
        print(rows[-1], flush=True)
    for workers, part in of_a_turn(rows, options.seconds).items():
        print(f"gang, {workers} workers: control is {100 * part:.2f} % over a turn of {TURN:g} s")
    write_json(rows, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
