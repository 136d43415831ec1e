"""Several hosts: ``python -m ci.bench.engine_hosts``, a gang's exchange over links of a set rate.

Each worker is in a network namespace of its own, behind a link of a set rate both ways, and what
it takes is beside :mod:`ci.bench.engine_links`'s model. All hosts share this machine's cores: where
these are busy they, and not the network, are what is measured, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dask
import numpy as np

from ci.bench.engine_contestants import exchanges, fitted
from ci.bench.engine_links import (
    HERE,
    address,
    hosts,
    inside,
    missing,
    moved,
    per_megabyte,
    predicted,
    shape,
)
from daskdl.collective.parts import UNIT
from daskdl.scaling.processes import Processes, all_cpu_seconds, cluster
from daskdl.train import Callback, Trainer

#: Part of all cores above which they are the limit.
BUSY = 0.85


@dataclass(frozen=True)
class Row:
    """One vector on so many hosts; milliseconds of an iteration."""

    megabits: float
    hosts: int
    megabytes: float
    moved: float  #: MB through each link, each way
    predicted: float
    measured: float
    busy: float  #: part of all cores' time that was worked, also by others on the machine

    def __str__(self) -> str:
        limit = "the cores" if self.busy > BUSY else ""
        return (
            f"{self.megabits:>8g} {self.hosts:>5} {self.megabytes:>8.3f} {self.moved:>7.2f} "
            f"{self.predicted:>9.1f} {self.measured:>9.1f} {self.measured / self.predicted:>6.2f} "
            f"{100 * self.busy:>5.0f} {limit}"
        )


HEADER = (
    f"{'Mbit/s':>8} {'hosts':>5} {'MB':>8} {'moved':>7} {'model ms':>9} {'measured':>9} "
    f"{'ratio':>6} {'CPU %':>5} limit"
)


class Busy(Callback):
    """Reads at every group's end how long all cores have worked."""

    def __init__(self) -> None:
        self._clocks: list[tuple[float, float]] = []

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        """Read."""
        self._clocks.append((all_cpu_seconds(), time.perf_counter()))

    def part(self) -> float:
        """Return the part of all cores' time in the last group."""
        worked, took = np.subtract(self._clocks[-1], self._clocks[-2])
        return float(worked / took / (os.cpu_count() or 1))


def measured(processes: Processes, n: int, megabytes: float, megabits: float, calls: int) -> Row:
    """Return the row of a fit."""
    n_bytes = max(4 * UNIT * n, int(megabytes * 1e6) // 4 * 4)
    busy = Busy()
    options: dict[str, Any] = {"client": processes.client, "shards": n, "callbacks": [busy]}
    # Groups of 1, 4 and then all others.
    history = fitted(n_bytes, iterations=5 + calls, engine="gang", **options)
    return Row(
        megabits,
        n,
        n_bytes / 1e6,
        moved(n, n_bytes / 1e6),
        predicted(n, n_bytes / 1e6, megabits),
        statistics.median(exchanges(history, 5)),
        busy.part(),
    )


def races(
    counts: Sequence[int], rates: Sequence[float], sizes: Sequence[float], delay: float, calls: int
) -> list[Row]:
    """Return the rows of all numbers of hosts, rates and vectors."""
    rows: list[Row] = []
    said: set[str] = set()
    for n in counts:
        with hosts(n):
            for megabits in rates:
                if why := shape(n, megabits, delay):
                    said.add(why)
            prefixes, there = [inside(i) for i in range(n)], [address(i) for i in range(n)]
            with (
                dask.config.set({"daskdl.group-time": "1 hour"}),
                cluster(n, n, prefixes, there, HERE) as processes,
            ):
                for megabits in rates:
                    shape(n, megabits, delay)
                    for megabytes in sizes:
                        rows.append(measured(processes, n, megabytes, megabits, calls))
                        print(rows[-1], flush=True)
    for why in said:
        print(why)
    return rows


def slope(rows: Sequence[Row]) -> tuple[float, float]:
    """Return intercept in ms and slope in ms a MB of a line through measured times."""
    line = np.polyfit([row.moved for row in rows], [row.measured for row in rows], 1)
    return float(line[1]), float(line[0])


def conclusions(rows: Sequence[Row]) -> list[str]:
    """Return for each rate the measured slope beside the model's."""
    lines = []
    for megabits in sorted({row.megabits for row in rows}):
        own = [row for row in rows if row.megabits == megabits and row.busy <= BUSY]
        moved = {row.moved for row in own}
        if len(moved) < 2 or max(moved) < 1:  # MB: what is less takes no time of the network's
            lines.append(f"{megabits:g} Mbit/s: the cores are the limit, no slope of the network")
            continue
        start, each = slope(own)
        lines.append(
            f"{megabits:g} Mbit/s: {each:.2f} ms a MB moved (model {per_megabyte(megabits):.2f}, "
            f"ratio {each / per_megabyte(megabits):.2f}), {start:+.1f} ms at none"
        )
    return lines


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw measured and predicted times against what is moved."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    largest = max(row.megabytes for row in rows)
    big = [row for row in rows if row.megabytes == largest]
    for i, megabits in enumerate(sorted({row.megabits for row in big})):
        own = sorted((r for r in big if r.megabits == megabits), key=lambda r: r.hosts)
        n = [row.hosts for row in own]
        far = [2 ** (k / 2) for k in range(2, 17)]
        model = [predicted(round(m), own[0].megabytes, megabits) for m in far]
        ax.plot(far, model, color=f"C{i}", lw=1, label=f"model, {megabits:g} Mbit/s")
        ax.plot(n, [row.measured for row in own], "o", color=f"C{i}", label="measured")
        limited = [row for row in own if row.busy > BUSY]
        ax.plot([r.hosts for r in limited], [r.measured for r in limited], "o", color="w", ms=3)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks([2, 4, 8, 32, 96, 256], ["2", "4", "8", "32", "96", "256"])
    ax.set(xlabel="hosts (hollow: this machine's cores are the limit)", ylabel="ms an iteration",
           title=f"Synchronization of {largest:g} MB")  # fmt: skip
    ax.legend(frameon=False, fontsize="small", ncols=2)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--megabits", type=float, nargs="+", default=[200, 1000, 10_000])
    parser.add_argument("--megabytes", type=float, nargs="+", default=[0, 7, 28])
    parser.add_argument("--delay", type=float, default=0.1, help="ms, where the kernel has netem")
    parser.add_argument("--calls", type=int, default=6, help="iterations to measure")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--png", type=Path, help="draw them into this file")
    options = parser.parse_args(arguments)
    if why := missing():
        print(why, file=sys.stderr)
        return 2
    print(HEADER)
    try:
        rows = races(
            options.hosts, options.megabits, options.megabytes, options.delay, options.calls
        )
    except KeyboardInterrupt:
        print("interrupted; the namespaces are gone", file=sys.stderr)
        return 130
    print(*conclusions(rows), sep="\n")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    if options.png:
        draw(rows, options.png)
    return 0


if __name__ == "__main__":
    sys.exit(main())
