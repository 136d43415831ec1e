"""Races on a shared machine: contestants alternate, and a table has minimum and median."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from daskdl.kernels.runtime.threads import available_cores, thread_budget

Work = Callable[[], object]

#: Seconds after which the threads of the contestant before have stopped looking for work: those of
#: OpenMP, PyTorch's, keep a core busy for some milliseconds.
SETTLE = 0.02


@dataclass(frozen=True)
class Case:
    """The same work by both.

    Parameters
    ----------
    name : str
        Family, shape and pass, such as "conv2d/resnet 3x3 64@56/forward".
    ours : callable
    peers : mapping of str to callable
        Variants of the peer, such as its memory formats; the fastest of them counts.
    """

    name: str
    ours: Work
    peers: dict[str, Work]


@dataclass
class Times:
    """Milliseconds of every run of one contestant."""

    ms: list[float] = field(default_factory=list)

    @property
    def least(self) -> float:
        """The run that others disturbed least."""
        return min(self.ms)

    @property
    def median(self) -> float:
        """The usual run."""
        return statistics.median(self.ms)


def time_ms(work: Work, calls: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the milliseconds of one call, as the mean of several in a row."""
    began = clock()
    for _ in range(calls):
        work()
    return 1000 * (clock() - began) / calls


def race(
    case: Case,
    seconds: float = 1.0,
    least_runs: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Times]:
    """Time ours and every peer in turns for about so many seconds each.

    ``clock`` may be ``time.thread_time`` where all contestants work in the calling thread alone.

    Returns
    -------
    mapping of "ours" and the names of the peers to Times
    """
    contestants = {"ours": case.ours, **case.peers}
    calls = {}
    for name, work in contestants.items():
        work()  # compile, allocate, choose algorithms
        once = time_ms(work, 1)
        calls[name] = max(1, round(5 / max(once, 1e-3)))  # at least about 5 ms a run
    times = {name: Times() for name in contestants}
    began = time.perf_counter()
    while len(times["ours"].ms) < least_runs or time.perf_counter() - began < seconds * len(
        contestants
    ):
        for name, work in contestants.items():
            time.sleep(SETTLE)
            work()  # wake this one's own threads, and fetch its memory
            times[name].ms.append(time_ms(work, calls[name], clock))
    return times


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
        """Return the row of what :func:`ci.bench.timing.race` measured."""
        ours = times["ours"]
        # "ours, ..." is another way of ours, shown beside the peers and no rival of itself.
        peers = (key for key in times if not key.startswith("ours"))
        peer = min(peers, key=lambda key: times[key].least)
        other = times[peer]
        return cls(
            name, threads, ours.least, other.least, other.least / ours.least, ours.median,
            other.median, peer,
        )  # fmt: skip


def line(row: Row) -> str:
    """Return a row for people."""
    return (
        f"{row.name:<52} {row.threads:>2} {row.ours_ms:>9.3f} {row.peer_ms:>9.3f} "
        f"{row.ratio:>6.2f} {row.peer_median_ms / row.ours_median_ms:>6.2f}  {row.peer}"
    )


HEADER = (
    f"{'case':<52} {'th':>2} {'ours ms':>9} {'peer ms':>9} {'ratio':>6} {'median':>6}  peer's best"
)


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


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


def write_json(rows: Sequence[Row], path: Path) -> None:
    """Write the rows as a list of objects."""
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def options_of(description: str, seconds: float) -> argparse.ArgumentParser:
    """Return a parser of threads, seconds and the file for the rows."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--threads", default=f"1,{min(2, available_cores())}", help="such as 1,2")
    help_text = "of each contestant of a case"
    parser.add_argument("--seconds", type=float, default=seconds, help=help_text)
    parser.add_argument("--json", type=Path, help="file for the rows")
    return parser


def budgets(threads: str, quiet: bool = False) -> Iterator[int]:
    """Yield the numbers of threads that were asked for, each while both sides have so many."""
    import torch

    if not quiet:
        print(f"PyTorch {torch.__version__}; ratio: its time over ours, least and median of runs")
        print(HEADER)
    for n in sorted({int(n) for n in threads.split(",")}):
        torch.set_num_threads(n)
        with thread_budget(n):
            yield n


def raced(options: argparse.Namespace, cases: Callable[[], Iterable[Case]]) -> None:
    """Race the cases on each number of threads, print the table, and write it where asked."""
    rows: list[Row] = []
    for threads in budgets(options.threads):
        for case in cases():
            rows.append(Row.of(case.name, threads, race(case, options.seconds)))
            print(line(rows[-1]), flush=True)
    print(*means(rows), sep="\n")
    if options.json:
        write_json(rows, options.json)
