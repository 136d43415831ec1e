"""Polynomial: a learning rate that falls to its end along a power, linearly by default."""

from __future__ import annotations

from dataclasses import dataclass

from daskdl.optim.method import at_least_zero
from daskdl.optim.schedules.schedule import Schedule, whole


@dataclass(frozen=True)
class Polynomial(Schedule):
    """``end + (rate - end) * (1 - iteration / over) ** power``, and ``end`` from ``over`` on.

    Parameters
    ----------
    rate : float
        The first learning rate.
    over : int
        The iteration at which the last one is reached.
    power : float
    end : float
        The last learning rate.

    Examples
    --------
    >>> [Polynomial(1.0, over=2)(i) for i in range(4)]
    [1.0, 0.5, 0.0, 0.0]
    """

    rate: float
    over: int
    power: float = 1.0
    end: float = 0.0

    def __post_init__(self) -> None:
        at_least_zero(self, "rate", "power", "end")
        whole(self, "over", 1)

    def __call__(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        if iteration >= self.over:
            return float(self.end)
        left = 1 - iteration / self.over
        return float(self.end + (self.rate - self.end) * left**self.power)
