"""Exponential: a learning rate that falls by the same factor over every so many iterations."""

from __future__ import annotations

from dataclasses import dataclass

from daskdl.optim.method import at_least_zero
from daskdl.optim.schedules.schedule import Schedule, whole


@dataclass(frozen=True)
class Exponential(Schedule):
    """``rate * factor ** (iteration / over)``; the same at whole steps only is :class:`Step`.

    Parameters
    ----------
    rate : float
        The first learning rate.
    factor : float
    over : int
        Iterations that it takes to fall by the factor.

    Examples
    --------
    >>> [Exponential(1.0, 0.25, over=2)(i) for i in range(4)]
    [1.0, 0.5, 0.25, 0.125]
    """

    rate: float
    factor: float
    over: int = 1

    def __post_init__(self) -> None:
        at_least_zero(self, "rate", "factor")
        whole(self, "over", 1)

    def __call__(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        return self.rate * float(self.factor) ** (iteration / self.over)
