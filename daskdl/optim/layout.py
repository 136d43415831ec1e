"""Layout: which parameter each number of the flat vector belongs to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol

from daskdl.optim.ranges import Ranges


class HasParameters(Protocol):
    """A model, as far as its layout is concerned."""

    def named_parameters(self) -> Iterable[tuple[str, Any]]:
        """Yield (name, parameter with a shape), in the order of the flat vector."""


@dataclass(frozen=True)
class Layout:
    """Names and shapes of a model's parameters, in the order in which they lie in its vector.

    Parameters
    ----------
    names : tuple of str
    shapes : tuple of tuple of int

    Examples
    --------
    >>> layout = Layout(("dense.weight", "dense.bias"), ((2, 3), (2,)))
    >>> layout.size, layout.find("*.bias")
    (8, [1])
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, model: HasParameters) -> Layout:
        """Return the layout of a model's parameters."""
        named = [(name, tuple(p.shape)) for name, p in model.named_parameters()]
        return cls(tuple(name for name, _ in named), tuple(shape for _, shape in named))

    @property
    def size(self) -> int:
        """Numbers of the vector."""
        return sum(map(math.prod, self.shapes))

    @property
    def ranges(self) -> Ranges:
        """Where each parameter lies; its kind is its place among the parameters."""
        stops, total = [], 0
        for shape in self.shapes:
            total += math.prod(shape)
            stops.append(total)
        return Ranges(tuple(stops), tuple(range(len(stops))))

    def find(self, pattern: str) -> list[int]:
        """Return the places of the parameters whose name matches a pattern of fnmatch."""
        return [i for i, name in enumerate(self.names) if fnmatchcase(name, pattern)]
