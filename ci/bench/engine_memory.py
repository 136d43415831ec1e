"""Whether memory stays flat: ``python -m ci.bench.engine_memory``, a small model for long.

The scheduler, both workers and the client are processes of their own. What each holds is read at
the ends of groups; the slope is that of a straight line through the second half of the run.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from daskdl.data import SampleSet
from daskdl.nn import Linear, MSELoss, ReLU, Sequential
from daskdl.optim import Adam
from daskdl.scaling.processes import Process, Processes, cluster
from daskdl.train import Callback, History, Trainer

#: What is looked at.
COLUMNS = ("tasks", "scheduler", "worker 0", "worker 1", "client")


@dataclass(frozen=True)
class Row:
    """One of :data:`COLUMNS` over a run: number of tasks, or MB that are resident."""

    engine: str
    what: str
    start: float
    middle: float
    end: float
    slope: float  #: per 1000 iterations, over the second half

    def __str__(self) -> str:
        unit = "tasks" if self.what == "tasks" else "MB"
        return (
            f"{self.engine:<6} {self.what:<10} {self.start:>8.1f} {self.middle:>8.1f} "
            f"{self.end:>8.1f} {self.slope:>+9.3f} {unit} per 1000 iterations"
        )


HEADER = f"{'engine':<6} {'of':<10} {'start':>8} {'middle':>8} {'end':>8} {'slope':>9}"


class Watch(Callback):
    """Reads what every process holds about ``samples`` times in a run."""

    def __init__(self, processes: Processes, iterations: int, samples: int) -> None:
        self._processes, self._every = processes, max(1, iterations // samples)
        self.at: list[int] = []
        self.held: dict[str, list[float]] = {name: [] for name in COLUMNS}

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        """Read."""
        if self.at and iteration < self.at[-1] + self._every:
            return
        gc.collect()
        processes = self._processes
        self.at.append(iteration)
        self.held["tasks"].append(processes.client.run_on_scheduler(tasks_of))
        client = Process(os.getpid(), "")
        for name, process in zip(
            COLUMNS[1:], (processes.scheduler, *processes.hosts, client), strict=True
        ):
            self.held[name].append(process.megabytes())

    def rows(self, engine: str) -> list[Row]:
        """Return the rows that were read."""
        half = len(self.at) // 2
        return [
            Row(engine, name, held[0], held[half], held[-1], slope(self.at[half:], held[half:]))
            for name, held in self.held.items()
        ]


def tasks_of(dask_scheduler: object) -> int:
    """Return the number of tasks that a scheduler knows."""
    return len(dask_scheduler.tasks)  # type: ignore[attr-defined]


def tasks_left(processes: Processes, patience: float = 10) -> int:
    """Return the number of tasks that stay; what a client lets go reaches the scheduler later."""
    limit = time.monotonic() + patience
    while True:
        left = int(processes.client.run_on_scheduler(tasks_of))
        if not left or time.monotonic() > limit:
            return left
        time.sleep(0.1)


def slope(at: Sequence[int], values: Sequence[float]) -> float:
    """Return by how much a value grows in 1000 iterations."""
    return float(1000 * np.polyfit(at, values, 1)[0]) if len(at) > 1 else 0.0


def history_bytes(history: History) -> float:
    """Return the bytes of a history for each iteration."""
    columns = history._columns.values()
    return sum(sys.getsizeof(c) + sum(map(sys.getsizeof, c)) for c in columns) / len(history)


def watched(processes: Processes, engine: str, iterations: int, samples: int) -> list[Row]:
    """Fit a small model and return how much everyone held."""
    x = np.random.default_rng(0).normal(size=(320, 4)).astype(np.float32)
    partitions = SampleSet.from_arrays(x=x, y=x[:, :2], partitions=2)
    model = Sequential(Linear(4, 16, seed=0), ReLU(), Linear(16, 2, seed=1))
    watch = Watch(processes, iterations, samples)
    trainer = Trainer(model, MSELoss(), Adam(1e-3))
    trainer.fit(
        partitions,
        iterations=iterations,
        batch_size=8,
        callbacks=[watch],
        engine=engine,
        client=processes.client,
        progress=False,
    )
    rows = watch.rows(engine)
    for row in rows:
        print(row, flush=True)
    print(
        f"{engine}: {tasks_left(processes)} tasks after the fit; the history has "
        f"{history_bytes(trainer.history):.0f} bytes an iteration"
    )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=20_000)
    parser.add_argument("--engines", nargs="+", default=["gang", "graph"])
    parser.add_argument("--samples", type=int, default=100, help="times to look")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args(arguments)
    print(HEADER)
    rows: list[Row] = []
    for engine in options.engines:
        with cluster(2, 2) as processes:
            rows += watched(processes, engine, options.iterations, options.samples)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
