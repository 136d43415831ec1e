"""Partition: samples that a worker holds, and the recipe from which any worker can load them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from daskdl.data.ragged import Ragged, concatenated

#: Columns by name: arrays, or Ragged ones, with a common first axis.
Batch = dict[str, Any]
Indices = NDArray[np.int64]


class Partition(Protocol):
    """Samples in memory."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""

    def __len__(self) -> int: ...

    def take(self, indices: Indices) -> Batch:
        """Return the samples at these positions as arrays with a common first axis, by name."""


class Recipe(Protocol):
    """How to load a partition; it pickles, and every worker loads the same from it."""

    @property
    def nbytes(self) -> int:
        """Bytes that the loaded partition will hold."""

    @property
    def in_memory(self) -> bool:
        """Whether the recipe carries the data itself, so that it is better sent than loaded."""

    def __len__(self) -> int: ...

    def part(self, start: int, stop: int) -> Recipe:
        """Return the recipe of the samples from ``start`` up to ``stop``."""

    def load(self) -> Partition:
        """Load the samples."""


class Excerpt:
    """Base of recipes, frozen dataclasses, that load samples ``start`` up to ``stop`` of more."""

    start: int
    stop: int

    in_memory = False

    def __len__(self) -> int:
        return self.stop - self.start

    def part(self, start: int, stop: int) -> Self:
        """Return the recipe of the samples from ``start`` up to ``stop`` of these."""
        return replace(self, start=self.start + start, stop=self.start + stop)  # type: ignore[type-var]


@dataclass(frozen=True)
class Arrays:
    """Named columns with a common first axis: a partition, and its own recipe.

    Parameters
    ----------
    arrays : dict of array or Ragged
    bad : tuple of str
        What was left out because it is no sample: which record, and why.
    """

    arrays: Batch
    bad: tuple[str, ...] = ()

    in_memory = True

    @property
    def nbytes(self) -> int:
        """Bytes held; of columns of objects at a guess from some."""
        return sum(map(_bytes_of, self.arrays.values()))

    def __sizeof__(self) -> int:  # what dask asks when it accounts for a worker's memory
        return self.nbytes

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values()), ()))

    def part(self, start: int, stop: int) -> Arrays:
        """Return views of the samples from ``start`` up to ``stop``."""
        return Arrays({name: array[start:stop] for name, array in self.arrays.items()})

    def load(self) -> Arrays:
        """Return itself."""
        return self

    def take(self, indices: Indices) -> Batch:
        """Return copies of the samples at these positions."""
        return {name: array[np.asarray(indices)] for name, array in self.arrays.items()}


def _bytes_of(column: Any) -> int:
    if isinstance(column, Ragged) or column.dtype != object or not column.size:
        return int(column.nbytes)
    some = column.ravel()[:: -(-column.size // 100)]
    each = [getattr(value, "nbytes", None) or sys.getsizeof(value) for value in some]
    return int(column.nbytes + sum(each) * column.size // len(each))


@dataclass(frozen=True)
class JoinedRecipe:
    """The samples of several recipes, one after the other."""

    recipes: tuple[Recipe, ...]

    @property
    def inputs(self) -> tuple[Recipe, ...]:
        """What :func:`joined` is called with, loaded."""
        return self.recipes

    @property
    def make(self) -> Callable[..., Partition]:
        """Make the partition of the loaded inputs."""
        return joined

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        return sum(recipe.nbytes for recipe in self.recipes)

    @property
    def in_memory(self) -> bool:
        """Whether any part carries its data."""
        return any(recipe.in_memory for recipe in self.recipes)

    def __len__(self) -> int:
        return sum(map(len, self.recipes))

    def part(self, start: int, stop: int) -> Recipe:
        """Return the recipe of the samples from ``start`` up to ``stop``."""
        return join(cut(self.recipes, start, stop))

    def load(self) -> Partition:
        """Load all parts."""
        return joined(*(recipe.load() for recipe in self.recipes))


class JoinedPartition:
    """The samples of several partitions, one after the other."""

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self._partitions = list(partitions)
        self._ends = np.cumsum([len(p) for p in partitions])
        # Where sequences happen to be of one length they came as an array, and where no number is
        # missing they may have come as integers.
        self._ragged, self._dtypes = set[str](), dict[str, np.dtype[Any]]()
        shapes = dict[str, tuple[int, ...]]()
        for partition in partitions:
            for name, values in partition.take(np.arange(0)).items() if len(partition) else ():
                shape = values.shape[1:] if not isinstance(values, Ragged) else None
                if shape is None or shapes.setdefault(name, shape) != shape:
                    self._ragged.add(name)
                else:
                    known = self._dtypes.get(name, values.dtype)
                    self._dtypes[name] = np.result_type(known, values.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        return sum(partition.nbytes for partition in self._partitions)

    def __sizeof__(self) -> int:
        return self.nbytes

    def __len__(self) -> int:
        return int(self._ends[-1])

    def take(self, indices: Indices) -> Batch:
        """Return the samples at these positions, in this order."""
        if not len(indices):  # an empty part may not know its columns
            batch = max(self._partitions, key=len).take(indices)
            return {n: Ragged.from_array(v) if n in self._ragged else v for n, v in batch.items()}
        owner = np.searchsorted(self._ends, indices, side="right")
        result: Batch = {}
        for i in np.unique(owner):
            where = np.flatnonzero(owner == i)
            first = self._ends[i] - len(self._partitions[i])
            for name, values in self._partitions[i].take(indices[where] - first).items():
                if name in self._ragged:
                    result.setdefault(name, []).append(Ragged.from_array(values))
                    continue
                if name not in result:
                    shape = len(indices), *values.shape[1:]
                    result[name] = np.empty(shape, self._dtypes[name])
                result[name][where] = values
        if self._ragged:
            back = np.argsort(np.argsort(owner, kind="stable"))
            result |= {name: concatenated(result[name])[back] for name in self._ragged}
        return result


def joined(*partitions: Partition) -> Partition:
    """Return one partition of the samples of all."""
    return JoinedPartition(partitions)


def cut(recipes: Sequence[Recipe], start: int, stop: int) -> list[Recipe]:
    """Return recipes of the samples from ``start`` up to ``stop`` of all recipes in a row."""
    parts, first = [], 0
    for recipe in recipes:
        a, b = max(start, first), min(stop, first + len(recipe))
        if a < b:
            whole = (a, b) == (first, first + len(recipe))
            parts.append(recipe if whole else recipe.part(a - first, b - first))
        first += len(recipe)
    return parts


def join(recipes: Sequence[Recipe]) -> Recipe:
    """Return one recipe of the samples of all."""
    if len(recipes) == 1:
        return recipes[0]
    if all(hasattr(recipe, "followed_by") for recipe in recipes):
        return recipes[0].followed_by(recipes[1:])  # type: ignore[attr-defined]
    return JoinedRecipe(tuple(recipes))


def even_bounds(n: int, parts: int) -> list[int]:
    """Return the ``parts + 1`` bounds that cut ``range(n)`` into parts that differ by at most 1."""
    return [n * i // parts for i in range(parts + 1)]
