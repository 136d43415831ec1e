"""Sequence: learning rates by one schedule after the other."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from daskdl.errors import SettingsError
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class Sequence(Schedule):
    """Follow each schedule up to its milestone, the next one from its own iteration 0.

    Parameters
    ----------
    schedules : tuple of Schedule
        Of the iteration alone: none that goes by a metric, as Plateau does.
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
