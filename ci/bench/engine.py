"""Cost of synchronization: ``python -m ci.bench.engine``, both engines beside gloo and sockets.

Two worker processes and models of several sizes. All contestants take turns, so that whatever else
the machine does disturbs all of them; a ratio is of medians in one run. "gang over TCP" is what
workers of two machines would do: nothing is shared in memory. "gang by distributed.comm over TCP"
is what the engine would do without sockets of its own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dask

from ci.bench.engine_contestants import apart, by_comm, exchanges, fitted, peers, synchronization
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


GANG, GRAPH = "gang: all but computation", "graph: all but computation"

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
                half = fitted(n_bytes, engine="gang", wire="bfloat16", **options)
                with apart(client):
                    far = fitted(n_bytes, engine="gang", **options)
                    far_half = fitted(n_bytes, engine="gang", wire="bfloat16", **options)
                with by_comm(client):
                    comm = fitted(n_bytes, engine="gang", **options)
                for name, found in {
                    GANG: synchronization(gang),
                    "gang: its exchanges": exchanges(gang),
                    "gang, bfloat16": synchronization(half),
                    "gang over TCP": synchronization(far),
                    "gang over TCP, bfloat16": synchronization(far_half),
                    "gang by distributed.comm over TCP": synchronization(comm),
                    GRAPH: synchronization(graph),
                }.items():
                    times.setdefault(name, []).extend(found)
            medians = {name: statistics.median(ms) for name, ms in times.items()}
            for name, ms in times.items():
                rows.append(
                    Row(megabytes, name, medians[name], min(ms), medians[name] / medians["gloo"])
                )
                print(rows[-1], flush=True)
    return rows


#: What else there is to measure, each with options of its own: ``--part control --help``.
PARTS = ("control",)


def as_json(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return a line for each engine and size, beside gloo and the socket."""
    lines: list[dict[str, object]] = []
    for row in rows:
        if row.contestant in ("gloo", "socket"):
            continue
        of = {r.contestant: r.median for r in rows if r.megabytes == row.megabytes}
        lines.append(
            {
                "name": f"synchronization/{row.megabytes:g} MB/{row.contestant}",
                "ours_ms": row.median,
                "peer_ms": of["gloo"],
                "ratio": of["gloo"] / row.median,
                "ours_least_ms": row.least,
                "socket_ms": of["socket"],
                "percent_of_1500_ms": row.median / 15,
                "peer": "torch.distributed all_reduce, gloo",
            }
        )
    return lines


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
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    options = parser.parse_args(given)
    print(HEADER)
    rows = races(options.megabytes, options.rounds, options.calls)
    if options.json:
        options.json.write_text(json.dumps(as_json(rows), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
