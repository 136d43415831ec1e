"""Schedule, the base of schedules: the learning rate as a function of the iteration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.names import Named


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
