"""What synchronization costs: ``python -m ci.bench.engine``, both engines beside gloo and sockets.

Two worker processes and models of several sizes. All contestants take turns, so that whatever else
the machine does disturbs all of them; a ratio is of medians in one run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import dask

from ci.bench.engine_model import exchanges, fitted, synchronization
from ci.bench.engine_peers import peers
from daskdl.cluster import connect


@dataclass(frozen=True)
class Row:
    """One contestant at one size, milliseconds per iteration."""

    megabytes: float
    contestant: str
    median: float
    least: float
    to_gloo: float  #: its median over gloo's

    def __str__(self) -> str:
        return (
            f"{self.megabytes:>6g} {self.contestant:<34} {self.median:>9.2f} {self.least:>9.2f} "
            f"{self.to_gloo:>7.2f}"
        )


HEADER = f"{'MB':>6} {'contestant':<34} {'median':>9} {'least':>9} {'/ gloo':>7}"


def races(sizes: Sequence[float], rounds: int, calls: int) -> list[Row]:
    """Return the rows of all sizes."""
    rows: list[Row] = []
    # Long groups: what goes before and after one is not what this looks at.
    with (
        dask.config.set({"daskdl.group-time": "1 minute"}),
        connect(workers=2) as client,
        peers() as pairs,
    ):
        for megabytes in sizes:
            n_bytes = 8 * int(megabytes * 125_000)
            times: dict[str, list[float]] = {}
            for _ in range(rounds):
                for name, pair in pairs.items():
                    times.setdefault(name, []).extend(pair.times(n_bytes, calls))
                options = {"client": client, "shards": 2, "iterations": calls + 2}
                gang = fitted(n_bytes, engine="gang", **options)
                graph = fitted(n_bytes, engine="graph", **options)
                times.setdefault("gang: its exchanges", []).extend(exchanges(gang))
                times.setdefault("gang: all but computation", []).extend(synchronization(gang))
                times.setdefault("graph: all but computation", []).extend(synchronization(graph))
            medians = {name: statistics.median(ms) for name, ms in times.items()}
            for name, ms in times.items():
                rows.append(
                    Row(megabytes, name, medians[name], min(ms), medians[name] / medians["gloo"])
                )
                print(rows[-1], flush=True)
    return rows


#: What else there is to measure, each with options of its own: ``--part control --help``.
PARTS = ("control", "hosts", "memory")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--part"] and given[1:2] and given[1] in PARTS:
        part = importlib.import_module(f"ci.bench.engine_{given[1]}")
        return int(part.main(given[2:]))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, help="measure this instead; comes first")
    parser.add_argument("--megabytes", type=float, nargs="+", default=[1, 28, 100])
    parser.add_argument("--rounds", type=int, default=5, help="turns of every contestant")
    parser.add_argument("--calls", type=int, default=10, help="iterations in a turn")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args(given)
    print(HEADER)
    rows = races(options.megabytes, options.rounds, options.calls)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
