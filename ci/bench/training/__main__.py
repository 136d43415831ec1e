"""``python -m ci.bench.training``: one training step of whole networks beside PyTorch's.

Time: ours and PyTorch's, in each memory format, take turns in one process. Memory: each runs three
steps in a process of its own; what counts is the most that the process held in memory, less what it
held before the network was made. That of PyTorch's fastest format is shown.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci.bench.timing import Case, Row, budgets, line, options_of, overall, race, write_json
from ci.bench.training.cases import NETWORKS, Network
from daskdl.kernels.runtime.precision import PRECISIONS

#: Our own steps in float32, beside those in another precision.
OWN = "our float32"
STEPS = 3  # of a process that is watched: the first makes gradients and the optimizer's state


@dataclass(frozen=True)
class StepRow(Row):
    """A row of the kernels' benchmark, and what is asked of networks besides."""

    samples_per_second: float = 0.0
    peer_samples_per_second: float = 0.0
    ours_mb: float | None = None
    peer_mb: float | None = None
    precision: str = "float32"
    our_float32_ms: float | None = None


def measured(network: Network, threads: int, options: argparse.Namespace) -> StepRow:
    """Race a network's contestants and weigh them."""
    precision = options.precision
    # What autocast has of the other format it would turn in every layer.
    layouts = network.layouts if precision == "float32" else network.layouts[-1:]
    peers = {layout or "eager": network.peer_step(layout, precision) for layout in layouts}
    if options.compile:
        peers |= _compiled(network, precision)
    if precision != "float32":
        peers[OWN] = network.our_step()
    case = Case(network.name, network.our_step(precision), peers)
    times = race(case, options.seconds, least_runs=3)
    own = times.pop(OWN, None)
    plain = Row.of(network.name, threads, times)
    del case, peers
    memory = not options.no_memory
    more: dict[str, Any] = {
        "precision": precision,
        "our_float32_ms": None if own is None else own.least,
        "samples_per_second": 1000 * network.samples / plain.ours_ms,
        "peer_samples_per_second": 1000 * network.samples / plain.peer_ms,
    }
    if memory:
        more["ours_mb"] = weighed(network.name, threads, "ours", precision)
        more["peer_mb"] = weighed(network.name, threads, plain.peer, precision)
    return StepRow(**vars(plain), **more)


def _compiled(network: Network, precision: str) -> dict[str, Any]:
    """Return PyTorch's step through torch.compile; nothing where that refuses the network."""
    step = network.peer_step(network.layouts[-1], precision, True)
    try:
        step()
    except Exception as error:
        print(f"{network.name}: without torch.compile: {str(error).splitlines()[0]}", flush=True)
        return {}
    return {"compiled": step}


def weighed(name: str, threads: int, who: str, precision: str = "float32") -> float:
    """Return the MB that one contestant takes, from a process of its own."""
    command = [sys.executable, "-m", "ci.bench.training", "--only", name]
    command += ["--threads", str(threads), "--alone", who]
    command += ["--precision", precision]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def alone(network: Network, who: str, precision: str = "float32") -> float:
    """Run a few steps of one contestant and return the MB that they took."""
    before = held_mb()
    if who == "ours":
        step = network.our_step(precision)
    else:
        compiled = who == "compiled"
        layout = network.layouts[-1] if compiled else who.replace("eager", "")
        step = network.peer_step(layout, precision, compiled)
    for _ in range(STEPS):
        step()
    return held_mb("VmHWM") - before


def held_mb(key: str = "VmRSS") -> float:
    """Return the memory that this process holds, or as VmHWM the most that it has held.

    ``ru_maxrss`` would count what the process held before it became this program.
    """
    for row in Path("/proc/self/status").read_text().splitlines():
        if row.startswith(f"{key}:"):
            return int(row.split()[1]) / 1000
    raise OSError(f"/proc/self/status: expected a line {key}, found none")


def text(row: StepRow) -> str:
    """Return a row for people."""
    rates = f"{row.samples_per_second:.4g} : {row.peer_samples_per_second:.4g} samples/s"
    if row.our_float32_ms is not None:
        rates += f"; {row.our_float32_ms / row.ours_ms:.2f} of our float32's speed"
    if row.ours_mb is None or row.peer_mb is None:
        return f"{line(row)}; {rates}"
    return f"{line(row)}; {rates}; {row.ours_mb:.0f} : {row.peer_mb:.0f} MB"


def main(arguments: list[str] | None = None) -> None:
    """Race the networks and print the table."""
    parser = options_of(__doc__.splitlines()[0], seconds=5.0)
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--compile", action="store_true", help="with torch.compile, minutes each")
    parser.add_argument("--no-memory", action="store_true", help="time only")
    parser.add_argument("--alone", help=argparse.SUPPRESS)  # a process that is watched
    options = parser.parse_args(arguments)

    networks = [network for network in NETWORKS if options.only in network.name]
    rows: list[StepRow] = []
    for threads in budgets(options.threads, quiet=bool(options.alone)):
        for network in networks:
            if options.alone:
                print(alone(network, options.alone, options.precision))
                continue
            rows.append(measured(network, threads, options))
            print(text(rows[-1]), flush=True)
    if rows:
        print(*overall(rows), sep="\n")
    write_json(rows, options.json)


if __name__ == "__main__":
    main()
