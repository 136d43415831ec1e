"""Tables: the place of tables that are trained by rows in the vector of a run's state.

The driver keeps, sends and saves one vector of weights, and one vector for each kind of the
optimizer's state: parameters, buffers, and then the tables, row by row. In an iteration only
parameters and buffers, :attr:`Tables.start` numbers, move as a vector.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from daskdl.collective.payload import rows_of
from daskdl.collective.plan import WHOLE, Span
from daskdl.nn.core.joined import Joined
from daskdl.optim import Method
from daskdl.rows import Rows

Array = NDArray[Any]


@dataclass(frozen=True)
class Stretch:
    """Adjacent rows of a table with their state; a step changes them.

    ``table`` is the table's place among the tables, ``first`` the first row. Weights are float32
    (n, C), and so are the arrays of the optimizer's state except scalars.
    """

    table: int
    first: int
    weights: Array = field(repr=False)
    slots: dict[str, Array] = field(repr=False)

    def part_of(self, gradient: Rows) -> Rows:
        """Return these rows' part of a table's gradient, with ids from the first row."""
        part = gradient.part(self.first, self.first + len(self.weights))
        return Rows(part.ids - self.first, part.values, self.weights.shape)


@dataclass(frozen=True)
class Tables:
    """The tables of a model, maybe none; the first one begins at ``start`` of the whole vector."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, int], ...]
    start: int

    @classmethod
    def of(cls, joined: Joined) -> Tables:
        """Return the tables of a model, by its vectors."""
        shapes = tuple((p.shape[0], p.shape[1]) for p in joined.tables.values())
        return cls(tuple(joined.tables), shapes, joined.whole.size)

    def __bool__(self) -> bool:
        return bool(self.names)

    @property
    def size(self) -> int:
        """Numbers of the whole vector."""
        return self.start + sum(map(math.prod, self.shapes))

    def slices(self, spans: Sequence[Span]) -> list[slice]:
        """Return the places of some parts' rows in the whole vector, table by table."""
        slices, start = [], self.start
        for rows, width in self.shapes:
            for span in spans:
                first, stop = rows_of(span, rows)
                slices.append(slice(start + first * width, start + stop * width))
            start += rows * width
        return slices

    def views(self, vector: Array) -> list[Array]:
        """Return views of the tables in a whole vector, each (rows, C)."""
        views, start = [], self.start
        for rows, width in self.shapes:
            views.append(vector[start : start + rows * width].reshape(rows, width))
            start += rows * width
        return views

    def stretches(
        self, weights: Array, slots: Mapping[str, Array], spans: Sequence[Span] = (WHOLE,)
    ) -> list[Stretch]:
        """Return the rows of some parts, by default all; weights are views of the whole vector.

        A slot is a scalar, or has the numbers of these rows in the order of :meth:`slices`.
        """
        stretches, start = [], 0
        for i, view in enumerate(self.views(weights)):
            for span in spans:
                first, stop = rows_of(span, len(view))
                shape = stop - first, view.shape[1]
                end = start + math.prod(shape)
                slots_of = {
                    n: s[start:end].reshape(shape) if s.ndim else s for n, s in slots.items()
                }
                stretches.append(Stretch(i, first, view[first:stop], slots_of))
                start = end
        return stretches

    def step(
        self,
        method: Method,
        stretches: Sequence[Stretch],
        gradients: Sequence[Rows],
        iteration: int,
        scale: float,
    ) -> None:
        """Step in place the rows with a gradient, which is multiplied by ``scale``."""
        for stretch in stretches:
            gradient = stretch.part_of(gradients[stretch.table])
            name = self.names[stretch.table]
            method.update_rows(
                name, stretch.weights, gradient, stretch.slots, iteration, scale=scale
            )
