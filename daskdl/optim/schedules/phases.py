"""Warmup, Sequence and OneCycle: learning rates of one phase after the other."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.optim.method import at_least_zero, in_range
from daskdl.optim.schedules.schedule import Schedule, whole


@dataclass(frozen=True)
class Warmup(Schedule):
    """A straight line up to the first rate of ``then``, which then begins.

    Iteration i has ``start + (1 - start) * (i + 1) / iterations`` of that rate, so that no
    iteration has a rate of zero. P. Goyal et al., arXiv 1706.02677.

    Parameters
    ----------
    then : Schedule or float
        Schedule after the rise; it begins with its iteration 0.
    iterations : int
        Length of the rise.
    start : float
        0 <= start < 1.

    Examples
    --------
    >>> [Warmup(1.0, 4)(i) for i in range(6)]
    [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    """

    then: Schedule | float
    iterations: int
    start: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.then, Schedule):
            if callable(self.then):
                raise SettingsError(
                    f"Warmup: expected a Schedule or a number to go on with, found {self.then!r}"
                )
            in_range(self, "then", self.then, 0, float("inf"))
        whole(self, "iterations", 0)
        in_range(self, "start", self.start, 0, 1)

    def __call__(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        return self.at(iteration, self.init())

    def init(self) -> dict[str, NDArray[Any]]:
        """Return the state of the schedule that follows."""
        return self.then.init() if isinstance(self.then, Schedule) else {}

    def observe(self, state: dict[str, NDArray[Any]], metric: float) -> dict[str, NDArray[Any]]:
        """Return the state of the schedule that follows after a metric was measured."""
        return self.then.observe(state, metric) if isinstance(self.then, Schedule) else state

    def at(self, iteration: int, state: dict[str, NDArray[Any]]) -> float:
        """Return the learning rate of an iteration with what was observed before."""
        after = max(0, iteration - self.iterations)
        rate = self.then.at(after, state) if isinstance(self.then, Schedule) else float(self.then)
        if iteration >= self.iterations:
            return rate
        return rate * (self.start + (1 - self.start) * (iteration + 1) / self.iterations)


@dataclass(frozen=True)
class Sequence(Schedule):
    """Follow each schedule up to its milestone, the next one from its own iteration 0.

    Parameters
    ----------
    schedules : tuple of Schedule
        Schedules that depend on the iteration only, not on a metric, as Plateau does.
    milestones : tuple of int
        The iterations at which the second schedule begins, the third, and so on.

    Examples
    --------
    >>> from daskdl.optim.schedules import Exponential, Polynomial
    >>> schedule = Sequence((Polynomial(1.0, over=2), Exponential(0.5, 0.5)), (2,))
    >>> [schedule(i) for i in range(4)]
    [1.0, 0.5, 0.5, 0.25]
    """

    schedules: tuple[Schedule, ...]
    milestones: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("schedules", "milestones"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for schedule in self.schedules:
            if not isinstance(schedule, Schedule) or schedule.init():
                raise SettingsError(
                    "Sequence: expected schedules of the iteration alone, found "
                    f"{schedule!r}; one that goes by a metric may follow a Warmup"
                )
        begins = (0, *self.milestones)
        if len(begins) != len(self.schedules) or list(begins) != sorted(set(begins)):
            raise SettingsError(
                "Sequence: expected a milestone before each schedule but the first, each larger "
                f"than the one before, found {len(self.schedules)} schedules and milestones "
                f"{self.milestones}"
                "; give the iteration at which each schedule but the first begins"
            )

    def __call__(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        place = bisect_right(self.milestones, iteration)
        return self.schedules[place](iteration - (0, *self.milestones)[place])


@dataclass(frozen=True)
class OneCycle(Schedule):
    """One rise and one fall.

    L. Smith and N. Topin, arXiv 1708.07120.

    Parameters
    ----------
    rate : float
        The highest learning rate.
    over : int
        Iterations of rise and fall; after them the rate keeps its last value.
    rise : float
        Share of the iterations up to the highest rate.
    first, last : float
        The first learning rate is ``rate / first``, and the last one is the ``last``-th of that.
    linear : bool
        Straight lines in place of half cosines.
    three_phases : bool
        Fall to the first rate as fast as the rise, then to the last rate in the remaining
        iterations.

    Examples
    --------
    >>> [OneCycle(4.0, over=5, rise=0.6, first=2, last=1, linear=True)(i) for i in range(6)]
    [2.0, 3.0, 4.0, 3.0, 2.0, 2.0]
    """

    rate: float
    over: int
    rise: float = 0.3
    first: float = 25.0
    last: float = 1e4
    linear: bool = False
    three_phases: bool = False

    def __post_init__(self) -> None:
        at_least_zero(self, "rate")
        whole(self, "over", 2)
        in_range(self, "first", self.first, 1, math.inf)
        in_range(self, "last", self.last, 1, math.inf)
        most = 0.5 if self.three_phases else 1.0
        if not self.rise * self.over > 1 or not self.rise <= most:
            raise SettingsError(
                f"OneCycle: expected 1 / over < rise <= {most:g}, found rise={self.rise!r} and "
                f"over={self.over!r}"
                "; let the rise take more iterations than 1 / over of them"
            )

    def __call__(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        first = self.rate / self.first
        last, top, end = first / self.last, self.rise * self.over - 1, self.over - 1
        points = [(0.0, first), (top, self.rate), (end, last)]
        if self.three_phases:
            points.insert(2, (2 * top, first))
        i = min(iteration, end)
        for (start, a), (stop, b) in pairwise(points):
            if i <= stop:
                part = (i - start) / (stop - start) if stop > start else 1.0
                part = part if self.linear else (1 - math.cos(math.pi * part)) / 2
                return a + (b - a) * part
        return last
