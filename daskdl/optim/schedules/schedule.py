"""Schedule, the base of schedules, and Step, MultiStep and Exponential, which fall by a factor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.names import Named
from daskdl.optim.method import at_least_zero


class Schedule(Named, ABC):
    """A function that returns the learning rate of an iteration, from 0.

    Schedules are frozen dataclasses: they pickle and compare by value. A schedule that depends on
    more than the iteration, as Plateau does, takes and returns a state.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Halving(Schedule):
    ...     first: float
    ...     def __call__(self, iteration):
    ...         return self.first / 2**iteration
    >>> [Halving(1.0)(i) for i in range(3)]
    [1.0, 0.5, 0.25]
    """

    @abstractmethod
    def __call__(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""

    def init(self) -> dict[str, NDArray[Any]]:
        """Return the state before any measurement: scalars by name."""
        return {}

    def observe(self, state: dict[str, NDArray[Any]], metric: float) -> dict[str, NDArray[Any]]:
        """Return the state after a metric was measured."""
        return state

    def at(self, iteration: int, state: dict[str, NDArray[Any]]) -> float:
        """Return the learning rate of an iteration, with the state of earlier measurements."""
        return self(iteration)


def whole(thing: object, name: str, least: int) -> None:
    """Raise a SettingsError unless a setting is a whole number of at least ``least``."""
    value = getattr(thing, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SettingsError(
            f"{type(thing).__name__}: expected {name} to be a whole number of at least {least}, "
            f"found {value!r}"
        )


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
