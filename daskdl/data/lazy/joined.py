"""Joined recipes and partitions: samples of several, one after the other; and where to cut them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.lazy.derived import Derived, part_of
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.data.ragged import Ragged, common_dtype, concatenated
from daskdl.data.recipe import Recipe


class JoinedRecipe(Derived):
    """The samples of several recipes, one after the other."""

    def __init__(self, recipes: Sequence[Recipe]) -> None:
        self._recipes = tuple(recipes)
        nbytes = sum(recipe.nbytes for recipe in recipes)
        super().__init__(self._recipes, joined, sum(map(len, recipes)), nbytes)

    @property
    def pieces(self) -> Sequence[Recipe]:
        """The recipes that it joins, at any depth."""
        return [piece for recipe in self._recipes for piece in recipe.pieces]

    def part(self, start: int, stop: int) -> Recipe:
        """Return the recipe of the samples from ``start`` up to ``stop``."""
        return join(cut(self._recipes, start, stop))


class JoinedPartition(Partition):
    """The samples of several partitions, one after the other."""

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self._partitions = list(partitions)
        lengths, more = [len(p) for p in partitions], [len(p.weights) for p in partitions]
        self._length = sum(lengths)
        # First all parts' samples, one part after the other, then all that epochs draw.
        both = np.repeat([0, 1] * len(lengths), np.stack([lengths, more], 1).ravel())
        self._order = np.argsort(both, kind="stable")
        self._firsts = np.cumsum([0, *(n + m for n, m in zip(lengths, more, strict=True))])
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
                    self._dtypes[name] = common_dtype(known, values.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        return sum(partition.nbytes for partition in self._partitions)

    def __len__(self) -> int:
        return self._length

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights of all parts, if each has some."""
        parts = [p.weights for p in self._partitions if len(p) + len(p.weights)]
        return np.concatenate(parts) if all(map(len, parts)) else np.empty(0)

    def take(self, indices: Indices) -> Batch:
        """Return the samples at these positions, in this order."""
        indices = self._order[indices]
        if not len(indices):  # an empty part may not know its columns
            batch = max(self._partitions, key=len).take(indices)
            return {n: Ragged.from_array(v) if n in self._ragged else v for n, v in batch.items()}
        owner = np.searchsorted(self._firsts[1:], indices, side="right")
        result: Batch = {}
        for i in np.unique(owner):
            where = np.flatnonzero(owner == i)
            positions = indices[where] - self._firsts[i]
            for name, values in self._partitions[i].take(positions).items():
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
    """Return a partition of the samples of all, one after the other."""
    return JoinedPartition(partitions)


def join(recipes: Sequence[Recipe]) -> Recipe:
    """Return a recipe of the samples of all, one after the other."""
    first, *others = recipes
    if not others:
        return first
    followed = first.followed_by(others)
    return JoinedRecipe(recipes) if followed is None else followed


def without_empty(recipes: Sequence[Recipe]) -> list[Recipe]:
    """Return recipes with samples; empty ones that epochs draw from are joined to the next."""
    result, waiting = [], list[Recipe]()
    for recipe in recipes:
        waiting.append(recipe)
        if len(recipe):
            result.append(join(waiting))
            waiting = []
    return [*result[:-1], join([*result[-1:], *waiting])] if result else []


def cut(recipes: Sequence[Recipe], start: int, stop: int) -> list[Recipe]:
    """Return recipes of the samples from ``start`` up to ``stop`` of all recipes in a row."""
    parts, first = [], 0
    for recipe in recipes:
        a, b = max(start, first), min(stop, first + len(recipe))
        if a < b or (a == b == first < stop and recipe.is_drawn):
            whole = (a, b) == (first, first + len(recipe))
            parts.append(recipe if whole else part_of(recipe, a - first, b - first))
        first += len(recipe)
    return parts


def even_bounds(n: int, parts: int) -> list[int]:
    """Return the ``parts + 1`` bounds that cut ``range(n)`` into parts that differ by at most 1."""
    return [n * i // parts for i in range(parts + 1)]
