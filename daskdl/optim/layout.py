"""Layout: which parameter each number of the flat vector belongs to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol

from daskdl.optim.ranges import Ranges


class HasParameters(Protocol):
    """A model with named parameters."""

    def named_parameters(self) -> Iterable[tuple[str, Any]]:
        """Yield (name, parameter with shape and requires_grad), in the flat vector's order."""


@dataclass(frozen=True)
class Layout:
    """Names and shapes of a model's parameters, in the order in which they lie in its vector.

    Tables that are trained by rows come last; they are not in the vector.

    Parameters
    ----------
    names : tuple of str
    shapes : tuple of tuple of int
    frozen : tuple of str
        Names of parameters that do not change, whatever a method's decay or momentum.
    tables : int
        Number of tables, at the end.

    Examples
    --------
    >>> layout = Layout(("dense.weight", "dense.bias"), ((2, 3), (2,)))
    >>> layout.size, layout.find("*.bias")
    (8, [1])
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    frozen: tuple[str, ...] = ()
    tables: int = 0

    @classmethod
    def of(cls, model: HasParameters) -> Layout:
        """Return the layout of a model's parameters."""
        named = list(model.named_parameters())
        tables = [(name, p) for name, p in named if getattr(p, "sparse", False)]
        named = [(name, p) for name, p in named if not getattr(p, "sparse", False)] + tables
        frozen = tuple(name for name, p in named if not p.requires_grad)
        return cls(
            tuple(name for name, _ in named),
            tuple(tuple(p.shape) for _, p in named),
            frozen,
            len(tables),
        )

    @property
    def size(self) -> int:
        """Numbers of the vector."""
        return sum(map(math.prod, self._in_vector))

    @property
    def ranges(self) -> Ranges:
        """Range of each parameter; its kind is the parameter's place."""
        stops, total = [], 0
        for shape in self._in_vector:
            total += math.prod(shape)
            stops.append(total)
        return Ranges(tuple(stops), tuple(range(len(stops))))

    @property
    def _in_vector(self) -> tuple[tuple[int, ...], ...]:
        return self.shapes[: len(self.shapes) - self.tables]

    def find(self, pattern: str) -> list[int]:
        """Return the places of the parameters whose name matches a pattern of fnmatch."""
        return [i for i, name in enumerate(self.names) if fnmatchcase(name, pattern)]
