"""Timing of two contestants on a shared machine: alternate, repeat, keep minimum and median."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

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
