"""InverseTime: a learning rate that falls as one over the iterations."""

from __future__ import annotations

from dataclasses import dataclass

from daskdl.optim.method import at_least_zero
from daskdl.optim.schedules.schedule import Schedule, whole


@dataclass(frozen=True)
class InverseTime(Schedule):
    """``rate / (1 + decay * iteration / over)`` (H. Robbins and S. Monro, 1951).

    Parameters
    ----------
    rate : float
        The first learning rate.
    decay : float
    over : int
        Iterations that count as one.

    Examples
    --------
    >>> [InverseTime(1.0, 1.0)(i) for i in (0, 1, 3)]
    [1.0, 0.5, 0.25]
    """

    rate: float
    decay: float
    over: int = 1

    def __post_init__(self) -> None:
        at_least_zero(self, "rate", "decay")
        whole(self, "over", 1)

    def __call__(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        return float(self.rate / (1 + self.decay * iteration / self.over))
