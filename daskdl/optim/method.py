"""Method, the base of optim methods: a step of weights, gradient and state over a flat vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.names import Named
from daskdl.optim.layout import Layout
from daskdl.optim.ranges import ALONE, Grouping
from daskdl.rows import Rows

Vector = NDArray[np.float32]

#: Arrays (size,); a schedule may add scalars ().
State = dict[str, NDArray[Any]]

#: New weights and state.
Stepped = tuple[Vector, State]

#: Terms of the sums that a step needs, (G, c).
Terms = NDArray[np.float64]


class Step(NamedTuple):
    """The settings of a step, as :meth:`Method.update` takes them.

    ``groups`` says which ranges of the vector differ in learning rate and weight decay.
    """

    iteration: int
    scale: float = 1.0
    overwrite: bool = False
    groups: Grouping = ALONE


class Method(Named, ABC):
    """An optim method: settings that do not change, and pure functions.

    It does not change its inputs, since a task's result may be used again, unless ``overwrite``
    allows it; an array that a step does not change may be returned itself. Methods are frozen
    dataclasses: they pickle and compare by value. Methods such as :class:`ClipNorm` and
    :class:`EMA` wrap another one: their state is the inner method's and their own, whose names have
    a prefix.

    An engine uses a method so::

        method = method.on(Layout.of(model))       # once, before it is sent anywhere
        state = method.init(size)
        weights, state = method.update(weights, gradient, state, iteration)
        state = method.observe(state, loss)        # after each validation

    An engine that cuts the vector into slices, which begin at whole multiples of :attr:`unit`,
    asks ``method.part(slices)`` for the method of a member's slices; None means that only the whole
    vector can be stepped. A step of a :attr:`joint` method needs sums over the whole vector; each
    member computes the terms of its own slices::

        mine = method.part(slices)
        if mine.joint:
            terms = mine.terms(weights, gradient, state, iteration)
            mine = mine.knowing(terms_of_all_slices_in_order(terms))
        weights, state = mine.update(weights, gradient, state, iteration)

    A schedule's state belongs to no number of the vector. It has the shape (), and every member has
    it.

    Tables that are trained by rows are stepped apart from the vector, one by one and in place; a
    step costs what a batch has touched::

        state = method.init_rows(table.size)                    # shaped like the table then
        method.update_rows(name, table, rows, state, iteration)

    A joint method gets the terms of the vector and :meth:`row_terms` together.
    """

    #: Slices have a multiple of so many numbers: each term is of one such stretch at most.
    unit = 1

    @property
    def joint(self) -> bool:
        """Whether a step needs a sum over the whole vector, for instance to clip its norm."""
        return False

    @property
    def by_element(self) -> bool:
        """Whether this method may step any slice of the vector alone.

        Then a number's step depends only on its own weight, gradient and state, and slices get the
        bits of the whole.
        """
        return False

    @abstractmethod
    def init(self, size: int) -> State:
        """Return the state before the first step: float32 arrays (size,), maybe scalars."""

    def update(
        self,
        weights: Vector,
        gradient: Vector,
        state: State,
        iteration: int,
        scale: float = 1.0,
        overwrite: bool = False,
    ) -> tuple[Vector, State]:
        """Return new weights and state.

        Parameters
        ----------
        weights, gradient : float32 (size,)
            Or float64; then the results are float64 too.
        state : mapping of str to array
        iteration : int
            From 0.
        scale : float
            Factor of the gradient. A fit passes the sum over the samples of an iteration, and one
            over their number.
        overwrite : bool
            Whether writable arrays of weights and state may be changed and returned. Nothing else
            uses them then, and a step needs no other memory.
        """
        return self.stepped(weights, gradient, state, Step(iteration, scale, overwrite))

    def stepped(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Stepped:
        """Return new weights and state. A method defines this or :meth:`update`."""
        raise NotImplementedError(f"{type(self).__name__} has to define stepped() or update()")

    def on(self, layout: Layout) -> Method:
        """Return the method for a model's parameters; it does not change frozen ones.

        Raises
        ------
        SettingsError
            When a pattern of parameter names matches none of them.
        """
        return self

    def part(self, slices: Sequence[slice]) -> Self | None:
        """Return the method for adjacent slices of the vector; None if it cannot step slices."""
        return self if self.by_element else None

    def term_starts(self, size: int) -> NDArray[np.int64]:
        """Return the first index of each term of a vector of ``size``, increasing."""
        return np.zeros(0, np.int64)

    def terms(
        self, weights: Vector, gradient: Vector, state: State, iteration: int, scale: float = 1.0
    ) -> Terms:
        """Return the terms of the sums that a step needs, in the order of the vector.

        Returns
        -------
        float64 (G, c)
            All terms together have the same bits for any cuts of the vector.
        """
        return self.terms_at(weights, gradient, state, Step(iteration, scale))

    def terms_at(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Terms:
        """Return :meth:`terms`. A joint method defines this."""
        return np.zeros((0, 1))

    def row_terms(self, gradients: Sequence[Rows]) -> list[NDArray[np.float64]]:
        """Return the terms of the tables' gradients, (U,) for the U rows of each."""
        return [np.zeros(0) for _ in gradients]

    def knowing(
        self, terms: NDArray[np.float64], row_terms: Sequence[NDArray[np.float64]] = ()
    ) -> Self:
        """Return the method for one step, with the terms of the whole vector and of all rows."""
        return self

    def init_rows(self, size: int) -> State:
        """Return the state of ``size`` numbers of tables: arrays (size,) with `init`'s names.

        Raises
        ------
        SettingsError
            When the method has no step by rows.
        """
        raise SettingsError(
            f"{type(self).__name__}: expected parameters that are trained as a whole, found tables "
            "that are trained by rows, for which this method has no step; make them with "
            "sparse=False, or take one such as Adam or Adagrad"
        )

    def update_rows(
        self,
        name: str,
        table: NDArray[np.float32],
        gradient: Rows,
        state: State,
        iteration: int,
        scale: float = 1.0,
    ) -> None:
        """Step the rows of a table that have a gradient, in place.

        Rows without a gradient do not change, not even by weight decay.

        Parameters
        ----------
        name : str
            The parameter's name, for groups.
        table : float32 (N, C)
        gradient : Rows
            Gradient in the table's shape.
        state : mapping of str to array
            The state of :meth:`init_rows` in the table's shape, changed in place; and the scalars
            of :meth:`init`.
        iteration : int
            Iteration of the run from 0, not how often a row was touched.
        scale : float
            Factor of the gradient.
        """
        self.step_rows(name, table, gradient, state, Step(iteration, scale))

    def step_rows(self, name: str, table: Vector, rows: Rows, state: State, at: Step) -> None:
        """Step some rows of a table in place. A method with a step by rows defines this."""
        self.init_rows(0)  # which raises
        raise NotImplementedError(f"{type(self).__name__} has to define step_rows()")

    def observe(self, state: State, metric: float) -> State:
        """Return the state after a validation, for schedules such as Plateau."""
        return state

    def rate_at(self, iteration: int, state: State | None = None) -> float:
        """Return the learning rate of an iteration."""
        raise NotImplementedError(f"{type(self).__name__} has to define rate_at()")


def in_range(thing: object, name: str, value: float, low: float, high: float) -> None:
    """Raise a SettingsError unless low <= value < high."""
    if not (isinstance(value, (int, float, np.number)) and low <= value < high):
        raise SettingsError(
            f"{type(thing).__name__}: expected {low:g} <= {name} < {high:g}, found {value!r}"
        )


def at_least_zero(thing: object, *names: str) -> None:
    """Raise a SettingsError unless these settings are finite and not negative."""
    for name in names:
        in_range(thing, name, getattr(thing, name), 0, float("inf"))


def below_one(thing: object, *names: str) -> None:
    """Raise a SettingsError unless these settings are from 0 to 1, and not 1."""
    for name in names:
        in_range(thing, name, getattr(thing, name), 0, 1)
