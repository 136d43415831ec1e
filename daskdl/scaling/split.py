"""Split: the parts of an iteration's time, and which part of more workers' time is well spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from daskdl.train import History

#: Parts of an iteration of a worker, on average over the workers. Idle is waiting for others: for
#: the slowest worker's gradient, and whatever has no clock amid a group of iterations, as when the
#: operating system lets others compute. Scheduling is what driver, scheduler and their messages
#: take between groups; with the graph engine it is all that has no clock, since reduction and
#: broadcast are messages of Dask's there.
PARTS = ("data", "forward", "backward", "reduce", "update", "broadcast", "scheduling", "idle")

#: Parts that are one worker's own work.
WORK = ("data", "forward", "backward", "update")


def split(history: History, groups: Sequence[int], seconds: float) -> dict[str, float]:
    """Return the mean seconds of each of :data:`PARTS`, which add up to those of an iteration.

    All iterations from the first group on count; the groups begin with these, and together, with
    what is between groups, they took so many seconds.
    """
    first, count = groups[0], len(history) - groups[0]
    clocks = {name: float(history[name][first:].sum()) for name in PARTS if name != "scheduling"}
    if clocks["reduce"] > 0:  # a gang's
        wait = history["wait"][first:]
        begins = np.isin(np.arange(first, len(history)), groups)
        usual = float(wait[~begins].mean()) if not begins.all() else 0.0
        clocks["idle"] += float(np.where(begins, np.minimum(wait, usual), wait).sum())
    known = sum(clocks.values())
    # Phases of different workers may overlap a little; nothing is left between them then.
    scale = min(1.0, seconds / known) if known else 1.0
    clocks = {name: scale * value for name, value in clocks.items()}
    clocks["scheduling"] = seconds - sum(clocks.values())
    return {name: max(0.0, clocks[name]) / count for name in PARTS}


def weak(base: float, seconds: float) -> float:
    """Return the weak efficiency: each worker has as many samples as each has in the base."""
    return base / seconds


def strong(base_workers: int, base: float, workers: int, seconds: float) -> float:
    """Return the strong efficiency: all workers together have as many samples as in the base."""
    return base_workers * base / (workers * seconds)


def counts(first: int, last: int) -> list[int]:
    """Return numbers of workers from ``first`` to ``last``, each twice the one before."""
    numbers = []
    while first < last:
        numbers.append(first)
        first *= 2
    return [*numbers, last]
