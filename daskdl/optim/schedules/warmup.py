"""Warmup: a learning rate that rises before it follows another schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.optim.method import in_range
from daskdl.optim.schedules.schedule import Schedule, whole


@dataclass(frozen=True)
class Warmup(Schedule):
    """A straight line up to the first rate of ``then``, which begins when it is reached.

    Iteration i has ``start + (1 - start) * (i + 1) / iterations`` of that rate, so that none is
    lost on a rate of zero. P. Goyal et al., arXiv 1706.02677.

    Parameters
    ----------
    then : Schedule or float
        Its iteration 0 comes after the last of the rise.
    iterations : int
        Of the rise.
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
