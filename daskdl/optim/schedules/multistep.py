"""MultiStep: a learning rate that falls by a factor at given iterations."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from daskdl.errors import SettingsError
from daskdl.optim.method import at_least_zero
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class MultiStep(Schedule):
    """``rate`` times ``factor`` for every milestone that is reached.

    Parameters
    ----------
    rate : float
        The first learning rate.
    milestones : tuple of int
        Iterations from which the rate is lower, in increasing order; one given twice counts twice.
    factor : float

    Examples
    --------
    >>> [MultiStep(1.0, (2, 3), factor=0.5)(i) for i in range(4)]
    [1.0, 1.0, 0.5, 0.25]
    """

    rate: float
    milestones: tuple[int, ...]
    factor: float = 0.1

    def __post_init__(self) -> None:
        at_least_zero(self, "rate", "factor")
        object.__setattr__(self, "milestones", tuple(self.milestones))
        if list(self.milestones) != sorted(self.milestones) or min(self.milestones, default=0) < 0:
            raise SettingsError(
                "MultiStep: expected milestones >= 0 in increasing order, found "
                f"{self.milestones!r}"
                "; sort them"
            )

    def __call__(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        return self.rate * float(self.factor) ** bisect_right(self.milestones, iteration)
