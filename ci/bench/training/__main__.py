"""``python -m ci.bench.training``: one training step of whole networks against PyTorch's.

Time: ours and PyTorch's, in each memory format, take turns in one process. Memory: each runs three
steps in a separate process; its figure is the peak memory less the memory before the network was
made. PyTorch's is of its fastest format.
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

#: Name of our steps in float32, which run too in another precision.
OURS_FLOAT32 = "our float32"
STEPS = 3  # to measure memory: the first makes gradients and the optimizer's state


@dataclass(frozen=True)
class StepRow(Row):
    """A row of `ci.bench.timing` with speed, memory and precision."""

    samples_per_second: float = 0.0
    peer_samples_per_second: float = 0.0
    ours_mb: float | None = None
    peer_mb: float | None = None
    precision: str = "float32"
    our_float32_ms: float | None = None


def measured(network: Network, threads: int, options: argparse.Namespace) -> StepRow:
    """Race a network's contestants and measure their memory."""
    precision = options.precision
    # Under autocast, contiguous tensors would be converted in every layer.
    layouts = network.layouts if precision == "float32" else network.layouts[-1:]
    peers = {layout or "eager": network.peer_step(layout, precision) for layout in layouts}
    if options.compile:
        peers |= _compiled(network, precision)
    if precision != "float32":
        peers[OURS_FLOAT32] = network.our_step()
    case = Case(network.name, network.our_step(precision), peers)
    times = race(case, options.seconds, least_runs=3)
    float32 = times.pop(OURS_FLOAT32, None)
    row = Row.of(network.name, threads, times)
    del case, peers
    memory = not options.no_memory
    more: dict[str, Any] = {
        "precision": precision,
        "our_float32_ms": None if float32 is None else float32.least,
        "samples_per_second": 1000 * network.samples / row.ours_ms,
        "peer_samples_per_second": 1000 * network.samples / row.peer_ms,
    }
    if memory:
        more["ours_mb"] = weighed(network.name, threads, "ours", precision)
        more["peer_mb"] = weighed(network.name, threads, row.peer, precision)
    return StepRow(**vars(row), **more)


def _compiled(network: Network, precision: str) -> dict[str, Any]:
    """Return PyTorch's step through torch.compile; nothing if that fails."""
    step = network.peer_step(network.layouts[-1], precision, True)
    try:
        step()
    except Exception as error:
        print(f"{network.name}: without torch.compile: {str(error).splitlines()[0]}", flush=True)
        return {}
    return {"compiled": step}


def weighed(name: str, threads: int, who: str, precision: str = "float32") -> float:
    """Return the MB that one contestant takes in a separate process."""
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
    """Return the resident MB of this process, or with VmHWM their peak.

    ``ru_maxrss`` would count memory from before the process became this program.
    """
    for row in Path("/proc/self/status").read_text().splitlines():
        if row.startswith(f"{key}:"):
            return int(row.split()[1]) / 1000
    raise OSError(f"/proc/self/status: expected a line {key}, found none")


def text(row: StepRow) -> str:
    """Return a row as a line of the table."""
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
    parser.add_argument("--alone", help=argparse.SUPPRESS)  # to measure memory
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
