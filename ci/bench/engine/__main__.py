"""Cost of synchronization: ``python -m ci.bench.engine``, both engines against gloo.

Two worker processes and models of several sizes. All contestants take turns, so that other load on
the machine disturbs all of them; a ratio is of medians in one run. "gang over TCP" is the case of
workers on two machines: nothing is shared in memory.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import dask

from ci.bench.engine import control
from ci.bench.engine.contestants import (
    Pair,
    apart,
    exchanges,
    fitted,
    free_port,
    gloo,
    synchronization,
)
from ci.bench.timing import Times, Turn, turns
from daskdl.cluster import connect
from daskdl.train import History

GANG, GRAPH = "gang: all but computation", "graph: all but computation"


def contestants(client: Any, pair: Pair, n_bytes: int, calls: int) -> dict[str, Turn]:
    """Return gloo and our engines, each with ``calls`` exchanges of a vector in a turn."""
    latest: list[History] = []

    def fit(engine: str = "gang", within: Any = nullcontext, **options: Any) -> list[float]:
        with within(client):
            options |= {"engine": engine, "client": client}
            latest[:] = [fitted(n_bytes, shards=2, iterations=calls + 2, **options)]
        return synchronization(latest[0])

    half = {"wire": "bfloat16"}
    return {
        "gloo": partial(pair.times, n_bytes, calls),
        GANG: fit,
        "gang: its exchanges": lambda: exchanges(latest[0]),
        "gang, bfloat16": partial(fit, **half),
        "gang over TCP": partial(fit, within=apart),
        "gang over TCP, bfloat16": partial(fit, within=apart, **half),
        GRAPH: partial(fit, "graph"),
    }


def rows_of(megabytes: float, times: Mapping[str, Times]) -> list[dict[str, object]]:
    """Return a row for each engine, compared with gloo."""
    peer = times["gloo"].median
    return [
        {
            "name": f"synchronization/{megabytes:g} MB/{name}",
            "ours_ms": of.median,
            "peer_ms": peer,
            "ratio": peer / of.median,
            "ours_least_ms": of.least,
            "peer": "torch.distributed all_reduce, gloo",
        }
        for name, of in times.items()
        if name != "gloo"
    ]


def races(sizes: Sequence[float], rounds: int, calls: int) -> list[dict[str, object]]:
    """Race all contestants at each size, print a line for each, and return the rows."""
    rows: list[dict[str, object]] = []
    print(f"{'MB':>6} {'contestant':<34} {'median':>9} {'least':>9} {'/ gloo':>7}")
    # Long groups: the work before and after a group is not to be measured.
    with (
        dask.config.set({"daskdl.group-time": "1 minute"}),
        connect(workers=2) as client,
        closing(Pair(gloo, free_port())) as pair,
    ):
        for megabytes in sizes:
            n_bytes = 8 * int(megabytes * 125_000)
            times = turns(contestants(client, pair, n_bytes, calls), rounds)
            for name, of in times.items():
                ratio = of.median / times["gloo"].median
                line = f"{megabytes:>6g} {name:<34} {of.median:>9.2f} {of.least:>9.2f}"
                print(f"{line} {ratio:>7.2f}", flush=True)
            rows += rows_of(megabytes, times)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:2] == ["--part", "control"]:
        return control.main(words[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    part = "measure this instead; must come first, and has other options"
    parser.add_argument("--part", choices=["control"], help=part)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[1, 28, 100])
    parser.add_argument("--rounds", type=int, default=5, help="turns of every contestant")
    parser.add_argument("--calls", type=int, default=10, help="iterations in a turn")
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    options = parser.parse_args(words)
    rows = races(options.megabytes, options.rounds, options.calls)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
