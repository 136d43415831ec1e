"""Races on a shared machine: contestants take turns, and a table has minimum and median.

A program of this folder declares its cases and passes them to :func:`raced`; options, turns, table
and the file of rows are here.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from daskdl.kernels.runtime.threads import available_cores, thread_budget

Work = Callable[[], object]
#: A contestant that times itself: the milliseconds of some runs in a row.
Turn = Callable[[], Iterable[float]]
Clock = Callable[[], float]

#: Seconds until the previous contestant's threads stop looking for work: those of PyTorch's OpenMP
#: keep a core busy for some milliseconds.
SETTLE = 0.02


@dataclass(frozen=True)
class Case:
    """A case is work that we and each peer do in turns.

    Parameters
    ----------
    name : str
        Family, shape and pass, such as "conv2d/resnet 3x3 64@56/forward".
    ours : callable
    peers : mapping of str to callable
        Variants of the peer, such as memory formats; the fastest counts. Variants whose names begin
        with "ours" are shown and do not compete.
    amount, unit : float, str
        Work of a run, such as 64 images; with it speeds are printed, too.
    timed : bool
        Whether contestants time themselves, see :data:`Turn`.
    """

    name: str
    ours: Callable[[], object]
    peers: Mapping[str, Callable[[], object]]
    amount: float = 0.0
    unit: str = ""
    timed: bool = False


@dataclass
class Times:
    """Milliseconds of every run of one contestant."""

    ms: list[float] = field(default_factory=list)

    @property
    def least(self) -> float:
        """The fastest run, which other programs disturbed least."""
        return min(self.ms)

    @property
    def median(self) -> float:
        """The median run."""
        return statistics.median(self.ms)


def turns(contestants: Mapping[str, Turn], rounds: int, seconds: float = 0.0) -> dict[str, Times]:
    """Let all take turns for a number of rounds, or of seconds each if that is longer."""
    times = {name: Times() for name in contestants}
    began, done = time.perf_counter(), 0
    while done < rounds or time.perf_counter() - began < seconds * len(contestants):
        for name, turn in contestants.items():
            times[name].ms.extend(turn())
        done += 1
    return times


def time_ms(work: Work, calls: int, clock: Clock = time.perf_counter) -> float:
    """Return the milliseconds of one call, as the mean of several in a row."""
    began = clock()
    for _ in range(calls):
        work()
    return 1000 * (clock() - began) / calls


def _timed(work: Work, clock: Clock) -> Turn:
    """Return turns of some work, each of about 5 ms at least."""
    work()  # compile, allocate, choose algorithms
    once = time_ms(work, 1)
    calls = max(1, round(5 / max(once, 1e-3)))

    def turn() -> list[float]:
        time.sleep(SETTLE)
        if once < 1000:
            work()  # wake the threads of this contestant, and fetch its memory
        return [time_ms(work, calls, clock)]

    return turn


def race(
    case: Case, seconds: float = 1.0, least_runs: int = 5, clock: Clock = time.perf_counter
) -> dict[str, Times]:
    """Time ours and every peer in turns, for about ``seconds`` each.

    ``clock`` may be ``time.thread_time`` where all contestants work in the calling thread alone.

    Returns
    -------
    mapping of "ours" and the names of the peers to Times
    """
    works = {"ours": case.ours, **case.peers}
    contestants = works if case.timed else {name: _timed(w, clock) for name, w in works.items()}
    return turns(contestants, least_runs, seconds)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Row:
    """One case at one number of threads."""

    name: str
    threads: int
    ours_ms: float
    peer_ms: float
    ratio: float  #: peer / ours of the least times
    ours_median_ms: float
    peer_median_ms: float
    peer: str  #: the peer's fastest variant

    @classmethod
    def of(cls, name: str, threads: int, times: dict[str, Times]) -> Row:
        """Return the row for the times of :func:`ci.bench.timing.race`."""
        ours = times["ours"]
        peers = (key for key in times if not key.startswith("ours"))
        peer = min(peers, key=lambda key: times[key].least)
        other = times[peer]
        return cls(
            name, threads, ours.least, other.least, other.least / ours.least, ours.median,
            other.median, peer,
        )  # fmt: skip


def line(row: Row) -> str:
    """Return a row as a line of the table."""
    return (
        f"{row.name:<52} {row.threads:>2} {row.ours_ms:>9.3f} {row.peer_ms:>9.3f} "
        f"{row.ratio:>6.2f} {row.peer_median_ms / row.ours_median_ms:>6.2f}  {row.peer}"
    )


def detailed(case: Case, row: Row, times: dict[str, Times]) -> str:
    """Return the line of a row, with the least times of all peers if several, and speeds."""
    text = line(row)
    if len(times) > 2:
        others = (f"{name} {of.least:.4g}" for name, of in times.items() if name != "ours")
        text += f"  ({', '.join(others)})"
    if case.amount:
        ours, peer = (1000 * case.amount / ms for ms in (row.ours_ms, row.peer_ms))
        text += f"  {ours:.4g} : {peer:.4g} {case.unit}/s"
    return text


HEADER = (
    f"{'case':<52} {'th':>2} {'ours ms':>9} {'peer ms':>9} {'ratio':>6} {'median':>6}  peer's best"
)


def means(rows: Sequence[Row]) -> list[str]:
    """Return a line with the geometric mean of each family and number of threads."""
    groups: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        groups.setdefault((row.name.split("/")[0], row.threads), []).append(row.ratio)
    return [
        f"{family:<52} {threads:>2} {'':>9} {'':>9} {geometric_mean(ratios):>6.2f} "
        f"{min(ratios):>6.2f}  geometric mean, least of {len(ratios)}"
        for (family, threads), ratios in groups.items()
    ]


def overall(rows: Sequence[Row]) -> list[str]:
    """Return a line with the geometric mean of all rows."""
    ratios = [row.ratio for row in rows]
    return [f"geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f} of {len(rows)}"]


def write_json(rows: Sequence[Any], path: Path | None) -> None:
    """Write the rows as a list of objects, if there is a path."""
    if path:
        path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def options_of(
    description: str | None, seconds: float, threads: str | None = None
) -> argparse.ArgumentParser:
    """Return a parser with options for names, threads, seconds and the file for the rows."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    threads = threads or f"1,{min(2, available_cores())}"
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--threads", default=threads, help="such as 1,2")
    help_text = "of each contestant of a case"
    parser.add_argument("--seconds", type=float, default=seconds, help=help_text)
    parser.add_argument("--json", type=Path, help="file for the rows")
    return parser


def budgets(threads: str, quiet: bool = False) -> Iterator[int]:
    """Yield the requested numbers of threads, and let ours and PyTorch use each in turn."""
    try:
        import torch
    except ImportError:
        torch = None  # type: ignore[assignment]
    if not quiet:
        print("ratio: the peer's time over ours, least and median of runs", end="")
        print(f"; PyTorch {torch.__version__}" if torch else "")
        print(HEADER)
    for n in sorted({int(n) for n in threads.split(",")}):
        if torch:
            torch.set_num_threads(n)
        with thread_budget(n):
            yield n


def raced(
    options: argparse.Namespace,
    cases: Callable[[], Iterable[Case]],
    summary: Callable[[Sequence[Row]], list[str]] = means,
    least_runs: int = 5,
    clock: Clock = time.perf_counter,
) -> None:
    """Race the cases on each number of threads, print the table, and write it where asked."""
    rows: list[Row] = []
    for threads in budgets(options.threads):
        for case in cases():
            if options.only in case.name:
                times = race(case, options.seconds, least_runs, clock)
                rows.append(Row.of(case.name, threads, times))
                print(detailed(case, rows[-1], times), flush=True)
    if rows:
        print(*summary(rows), sep="\n")
    write_json(rows, options.json)
