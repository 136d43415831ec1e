"""A method around another one, with state of its own beside that one's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from daskdl.errors import SettingsError
from daskdl.optim.layout import Layout
from daskdl.optim.method import Method, State


@dataclass(frozen=True)
class Wrapper(Method):
    """Base of these methods.

    Parameters
    ----------
    method : Method
        The one inside.
    """

    method: Method

    def __post_init__(self) -> None:
        if not isinstance(self.method, Method):
            raise SettingsError(
                f"{type(self).__name__}: expected a Method as the first argument, found "
                f"{self.method!r}"
                "; write the method inside first, as in ClipNorm(Adam(), 1.0)"
            )

    @property
    def by_element(self) -> bool:
        """Whether the method inside is so."""
        return self.method.by_element

    def init(self, size: int) -> State:
        """Return the state of the one inside, and the own."""
        inner, own = self.method.init(size), self.own(size)
        twice = inner.keys() & own.keys()
        if twice:
            raise SettingsError(
                f"{type(self).__name__}: expected to be once around a method, found it again "
                f"inside {self.method!r}"
                "; leave one of them out"
            )
        return inner | own

    def own(self, size: int) -> State:
        """Return the own state, under names with an own prefix."""
        return {}

    def on(self, layout: Layout) -> Self:
        """Return the same around the method for a model's parameters."""
        return replace(self, method=self.method.on(layout))

    def part(self, slices: Sequence[slice]) -> Self | None:
        """Return the same around the method for slices; None where the one inside is joint."""
        inner = None if self.method.joint else self.method.part(slices)
        return None if inner is None else replace(self, method=inner)

    def inner(self, state: State) -> State:
        """Return the state of the one inside."""
        own = self.own(0)
        return {name: value for name, value in state.items() if name not in own}

    def rows_of(self, size: int) -> State:
        """Return the state of tables of the one inside, for those that have no own.

        Raises
        ------
        SettingsError
            When there is no step by rows.
        """
        if self.method.joint:
            raise SettingsError(
                f"{type(self).__name__}: expected a method that needs no sum over the whole "
                f"gradient to train tables by rows, found {self.method!r} inside; put that around "
                "this, or make the tables with sparse=False"
            )
        return self.method.init_rows(size)

    def observe(self, state: State, metric: float) -> State:
        """Return the state after a validation."""
        return self.method.observe(state, metric)

    def rate_at(self, iteration: int, state: State | None = None) -> float:
        """Return the learning rate of an iteration."""
        return self.method.rate_at(iteration, state)
