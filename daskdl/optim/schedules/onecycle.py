"""OneCycle: a learning rate that rises to its highest value and falls to almost nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from daskdl.errors import SettingsError
from daskdl.optim.method import at_least_zero, in_range
from daskdl.optim.schedules.schedule import Schedule, whole


@dataclass(frozen=True)
class OneCycle(Schedule):
    """One rise and one fall.

    L. Smith and N. Topin, arXiv 1708.07120.

    Parameters
    ----------
    rate : float
        The highest learning rate.
    over : int
        Iterations of the whole; it stays at its last value then.
    rise : float
        Part of them until the highest rate.
    first, last : float
        The first learning rate is ``rate / first``, and the last one is the ``last``-th of that.
    linear : bool
        Along straight lines and not half cosines.
    three_phases : bool
        Fall as quickly as it rose to the first rate, and in what is left to the last one.

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
