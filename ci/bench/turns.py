"""``python -m ci.bench.turns BEFORE AFTER``: training steps of two checkouts, in turn.

One process for each checkout; they make some steps in turn, so that both meet the same load of the
machine. What counts is the median of the pairs' ratios: it is of use also on a busy machine. Both
must have the kernels compiled, or the first network takes a minute more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from ci.bench.training_cases import NETWORKS

#: Seconds of steps that a process makes before it is the other's turn, at least.
TURN = 0.05
LEAST_ROUNDS = 6


class Contestant:
    """A process that makes steps of a network in a checkout, when it is told to."""

    def __init__(self, tree: Path, network: str, threads: int) -> None:
        command = [sys.executable, "-P", "-W", "ignore", __file__, "--child", network]
        self._process = subprocess.Popen(
            [*command, "--threads", str(threads)], cwd=tree, text=True,
            env=os.environ | {"PYTHONPATH": str(tree)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.step(1)

    def step(self, number: int) -> float:
        """Return the seconds of each of so many steps."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def child(name: str, threads: int) -> None:
    """Make steps as long as there are lines that say how many."""
    from daskdl.kernels.runtime.threads import thread_budget

    (network,) = (network for network in NETWORKS if network.name == name)
    with thread_budget(threads):
        step = network.our_step()
        step()
        for line in sys.stdin:
            number, began = int(line), time.perf_counter()
            for _ in range(number):
                step()
            print((time.perf_counter() - began) / number, flush=True)


def ratio(trees: list[Path], name: str, threads: int, seconds: float) -> tuple[float, float, int]:
    """Return the median of the pairs' ratios, that of the least times, and the number of pairs."""
    both = [Contestant(tree, name, threads) for tree in trees]
    one = min(both[0].step(1) for _ in range(3))
    number = max(1, int(TURN / one))
    rounds = max(LEAST_ROUNDS, int(seconds / (2 * one * number)))
    found: list[list[float]] = [[], []]
    for i in range(rounds):
        for which in (0, 1) if i % 2 else (1, 0):
            found[which].append(both[which].step(number))
    for one_of_them in both:
        one_of_them.end()
    pairs = [after / before for before, after in zip(*found, strict=True)]
    return statistics.median(pairs), min(found[1]) / min(found[0]), rounds


def main(arguments: list[str] | None = None) -> None:
    """Compare two checkouts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trees", nargs="*", type=Path, metavar="BEFORE AFTER")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=12.0, help="of each network")
    parser.add_argument("--only", default="", help="networks whose name contains this")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        child(options.child, options.threads)
        return
    if len(options.trees) != 2:
        parser.error(f"expected two checkouts, found {len(options.trees)}")
    print(f"{'time after : before':36} {'median':>7} {'least':>7} {'pairs':>6}")
    medians = []
    for network in NETWORKS:
        if options.only in network.name and ":" not in network.name:
            trees = [tree.resolve() for tree in options.trees]
            median, least, rounds = ratio(trees, network.name, options.threads, options.seconds)
            medians.append(median)
            print(f"{network.name:36} {median:7.3f} {least:7.3f} {rounds:6}", flush=True)
    print(f"{'geometric mean':36} {statistics.geometric_mean(medians):7.3f}")


if __name__ == "__main__":
    main()
