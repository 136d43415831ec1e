"""Step: a learning rate that falls by a factor every so many iterations."""

from __future__ import annotations

from dataclasses import dataclass

from daskdl.optim.method import at_least_zero
from daskdl.optim.schedules.schedule import Schedule, whole


@dataclass(frozen=True)
class Step(Schedule):
    """``rate * factor ** (iteration // every)``.

    Parameters
    ----------
    rate : float
        The first learning rate.
    every : int
        Iterations between two falls.
    factor : float

    Examples
    --------
    >>> [Step(0.5, every=2, factor=0.5)(i) for i in range(5)]
    [0.5, 0.5, 0.25, 0.25, 0.125]
    """

    rate: float
    every: int
    factor: float = 0.1

    def __post_init__(self) -> None:
        at_least_zero(self, "rate", "factor")
        whole(self, "every", 1)

    def __call__(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        return self.rate * float(self.factor) ** (iteration // self.every)
