"""Counting: recipes that know their number of samples only after it was counted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from daskdl.data.lazy.derived import Derived
from daskdl.data.lazy.transformations import Transformation, itself
from daskdl.data.partition import Partition
from daskdl.data.recipe import Loadable, Recipe, Schema
from daskdl.errors import DataError


class Count(NamedTuple):
    """Number of samples, bytes and left-out records of a partition, known once it was loaded."""

    length: int
    nbytes: int
    bad: tuple[str, ...]


def count_of(partition: Partition, number: int) -> Count:
    """Return the count of a loaded partition."""
    return Count(len(partition), partition.nbytes, partition.bad)


class Uncounted(Derived):
    """A recipe whose number of samples is unknown until they are loaded and counted."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__([recipe], itself, None, recipe.nbytes)
        self._recipe = recipe
        self._counted: Recipe | None = None
        self.left_out: tuple[str, ...] = ()

    def learn(self, count: Count) -> None:
        """Remember a count."""
        self.left_out = count.bad
        same = partial(as_counted, count.length)
        self._counted = Derived([self], same, count.length, count.nbytes)

    @property
    def is_counted(self) -> bool:
        """Whether the samples have been counted."""
        return self._counted is not None

    @property
    def known(self) -> Recipe:
        """The recipe that knows the number of samples, once they have been counted."""
        return self if self._counted is None else self._counted

    @property
    def underlying(self) -> Loadable:
        """The recipe whose samples are counted."""
        return self._recipe.underlying

    @property
    def schema(self) -> Schema | None:
        """Shape and dtype of each array, if the recipe knows them."""
        return self._recipe.schema

    def __len__(self) -> int:
        assert self._counted is not None, "samples that are not counted yet"
        return len(self._counted)


def derived(recipe: Recipe, transform: Transformation, same_length: bool = True) -> Recipe:
    """Return the recipe of a transformed partition."""
    recipe = recipe.known
    if same_length and recipe.is_counted:
        return Derived([recipe], transform, len(recipe), recipe.nbytes)
    return Uncounted(Derived([recipe], transform, None, recipe.nbytes))


def left_out(recipes: Sequence[Recipe]) -> list[str]:
    """Return the bad records of these recipes, each once."""
    seen: dict[int, Loadable] = {}
    waiting: list[Loadable] = list(reversed(recipes))
    bad = list[str]()
    while waiting:
        recipe = waiting.pop()
        if id(recipe) not in seen:
            seen[id(recipe)] = recipe
            if isinstance(recipe, Uncounted) and recipe.is_counted:
                bad.extend(recipe.left_out)
            else:
                waiting.extend(recipe.inputs)
    return bad


def as_counted(length: int, partition: Partition) -> Partition:
    """Return a partition if it still has the counted number of samples."""
    if len(partition) != length:
        raise DataError(
            f"SampleSet: expected the {length:,} samples that were counted in a partition, found "
            f"{len(partition):,} when it was loaded again; let its source and its functions give "
            "the same each time, or persist() it before"
        )
    return partition
