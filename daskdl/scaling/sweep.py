"""Sweep: runs on more and more workers, each with its weak or strong efficiency."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from daskdl.scaling.measure import Run
from daskdl.scaling.split import strong, weak

#: From workers, and samples of an iteration of all of them together, to a run.
Measure = Callable[[int, int], Run]


@dataclass(frozen=True)
class Row:
    """A run, and how it compares with that on the fewest workers.

    Scaling is "weak", as many samples of each worker as there, or "strong", of all together.
    """

    scaling: str
    run: Run
    efficiency: float


def planned(counts: Sequence[int], batch: int, total: int) -> list[tuple[str, int, int]]:
    """Return scaling, workers and samples of rows: ``batch`` of each worker, or ``total`` of all.

    There is no strong row where not every worker would have a sample.
    """
    both = [(kind, n, m) for n in counts for kind, m in (("weak", n * batch), ("strong", total))]
    return [(kind, n, samples) for kind, n, samples in both if samples >= n]


def sweep(measure: Measure, plan: Sequence[tuple[str, int, int]]) -> Iterator[Row]:
    """Yield each row of a plan when it is measured; rows of the same run are measured once.

    Efficiencies are against the first row of the same scaling.
    """
    runs: dict[tuple[int, int], Run] = {}
    base: dict[str, Run] = {}
    for scaling, workers, samples in plan:
        if (workers, samples) not in runs:
            runs[workers, samples] = measure(workers, samples)
        run = runs[workers, samples]
        first = base.setdefault(scaling, run)
        if scaling == "weak":
            efficiency = weak(first.seconds, run.seconds)
        else:
            efficiency = strong(first.workers, first.seconds, workers, run.seconds)
        yield Row(scaling, run, efficiency)
