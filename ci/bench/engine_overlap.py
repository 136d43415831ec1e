"""Overlap: ``python -m ci.bench.engine_overlap``, what of an exchange hides behind backward passes.

A gang trains over links of a set rate (:mod:`ci.bench.engine_links`), once with all of the
gradient exchanged at the end of the backward pass and once in buckets as they are ready. The
network waits in place of computing, in 32 equal layers, or is one of ``daskdl.models``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dask
import numpy as np

from ci.bench.engine_hosts import Busy
from ci.bench.engine_links import HERE, address, hosts, inside, missing, shape
from daskdl.data import SampleSet
from daskdl.scaling.processes import Processes, cluster
from daskdl.scaling.workloads import Workload, waiting, workload
from daskdl.train import Trainer

#: Iterations before those that are measured: of the first two groups.
FIRST = 5


@dataclass(frozen=True)
class Row:
    """One network on so many hosts; milliseconds of an iteration."""

    megabits: float
    hosts: int
    megabytes: float
    late: float  #: an iteration, all exchanged at the end
    early: float  #: an iteration, buckets exchanged as they are ready
    late_reduce: float  #: waiting for sums of gradients, then
    early_reduce: float
    busy: float  #: part of all cores' time that was worked with buckets
    same: bool  #: whether both gave the same weights

    def __str__(self) -> str:
        hidden = 1 - self.early_reduce / self.late_reduce
        return (
            f"{self.megabits:>8g} {self.hosts:>5} {self.megabytes:>8.1f} {self.late:>9.0f} "
            f"{self.early:>9.0f} {100 * (1 - self.early / self.late):>7.0f} "
            f"{self.late_reduce:>10.0f} {self.early_reduce:>8.0f} {100 * hidden:>7.0f} "
            f"{100 * self.busy:>5.0f} {'same' if self.same else 'OTHER'}"
        )


HEADER = (
    f"{'Mbit/s':>8} {'hosts':>5} {'MB':>8} {'at end ms':>9} {'buckets':>9} {'less %':>7} "
    f"{'reduce ms':>10} {'buckets':>8} {'hid %':>7} {'CPU %':>5} weights"
)


def measured(processes: Processes, n: int, work: Workload, megabits: float, calls: int) -> Row:
    """Return the row of two fits."""
    x, y = work.draw(np.random.default_rng(0), n * work.batch)
    samples = SampleSet.from_arrays(x=x, y=y, partitions=n)
    found: list[tuple[float, float, bytes]] = []
    busy, size = Busy(), 0
    for bucket in (None, "4 MiB"):
        model, loss, optimizer = work.build()
        busy, size = Busy(), 4 * model.vector.size
        trainer = Trainer(model, loss, optimizer, seed=0)
        options: dict[str, Any] = {"client": processes.client, "engine": "gang", "progress": False}
        with dask.config.set({"daskdl.bucket-size": bucket}):
            history = trainer.fit(
                samples,
                batch_size=n * work.batch,
                iterations=FIRST + calls,
                callbacks=[busy],
                **options,
            )
        whole, reduce = (1000 * history[name][FIRST:] for name in ("seconds", "reduce"))
        weights = model.vector.tobytes()
        found.append((statistics.median(whole), statistics.median(reduce), weights))
    (late, late_reduce, one), (early, early_reduce, other) = found
    numbers = size / 1e6, late, early, late_reduce, early_reduce
    return Row(megabits, n, *numbers, busy.part(), one == other)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--megabits", type=float, nargs="+", default=[1000, 10_000])
    parser.add_argument("--model", default="resnet50", help="of daskdl.models, as in bench scaling")
    parser.add_argument("--simulate", type=float, help="seconds of waiting in place of computing")
    parser.add_argument("--calls", type=int, default=6, help="iterations to measure")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args(arguments)
    if why := missing():
        print(why, file=sys.stderr)
        return 2
    work = workload(options.model)
    if options.simulate is not None:
        size = work.build()[0].vector.size
        work = waiting(work, options.simulate, size)
    print(HEADER)
    rows: list[Row] = []
    for n in options.hosts:
        with hosts(n):
            prefixes, there = [inside(i) for i in range(n)], [address(i) for i in range(n)]
            with (
                dask.config.set({"daskdl.group-time": "1 hour"}),
                cluster(n, n, prefixes, there, HERE) as processes,
            ):
                for megabits in options.megabits:
                    shape(n, megabits, 0)
                    rows.append(measured(processes, n, work, megabits, options.calls))
                    print(rows[-1], flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
