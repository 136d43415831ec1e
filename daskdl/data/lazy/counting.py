"""Counting: recipes that do not know how many samples they have, until these are counted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from daskdl.data.lazy.derived import Derived
from daskdl.data.lazy.transformations import Range, Select, Transformation
from daskdl.data.partition import Partition
from daskdl.data.recipe import Loadable, Recipe, Schema
from daskdl.errors import DataError

if TYPE_CHECKING:
    from distributed import Future


class Count(NamedTuple):
    """Number of samples, bytes and left-out records of a partition, known once it was loaded."""

    length: int
    nbytes: int
    bad: tuple[str, ...]


def count_of(partition: Partition, number: int) -> Count:
    """Return the count of a loaded partition."""
    return Count(len(partition), partition.nbytes, partition.bad)


class Uncounted(Recipe):
    """A recipe of which only loading tells how many samples it has, until they were counted."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._counted: Recipe | None = None
        self.left_out: tuple[str, ...] = ()

    def learn(self, count: Count) -> None:
        """Remember a count."""
        self.left_out = count.bad
        same = partial(same_length, count.length)
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
    def inputs(self) -> Sequence[Loadable]:
        """Inputs of the recipe."""
        return self._recipe.inputs

    @property
    def in_memory(self) -> bool:
        """Whether the recipe carries its data."""
        return self._recipe.in_memory

    @property
    def futures(self) -> tuple[Future, ...]:
        """Data on workers that the recipe needs."""
        return self._recipe.futures

    @property
    def is_lazy(self) -> bool:
        """Whether tasks of Dask's have to be computed for the recipe."""
        return self._recipe.is_lazy

    @property
    def schema(self) -> Schema | None:
        """Shape and dtype of each array, if the recipe tells."""
        return self._recipe.schema

    @property
    def decodes(self) -> bool:
        """Whether a function makes the recipe's samples."""
        return self._recipe.decodes

    @property
    def is_shuffled(self) -> bool:
        """Whether the recipe stands on a shuffle."""
        return self._recipe.is_shuffled

    @property
    def nbytes(self) -> int:
        """Bytes, at a guess."""
        return self._recipe.nbytes

    def __len__(self) -> int:
        assert self._counted is not None, "samples that are not counted yet"
        return len(self._counted)

    def part(self, start: int, stop: int) -> Recipe:
        """Return the recipe of the samples from ``start`` up to ``stop``."""
        return Derived([self._recipe], Select(Range(start, stop)), stop - start, self.nbytes)

    def load(self) -> Partition:
        """Load the recipe."""
        return self._recipe.load()


def derived(recipe: Recipe, transform: Transformation, same_length: bool = True) -> Recipe:
    """Return the recipe of a transformed partition."""
    recipe = recipe.known
    if same_length and recipe.is_counted:
        return Derived([recipe], transform, len(recipe), recipe.nbytes)
    return Uncounted(Derived([recipe], transform, None, recipe.nbytes))


def left_out(recipes: Sequence[Recipe]) -> list[str]:
    """Return the records that are no samples, behind these recipes, each once."""
    seen: dict[int, Loadable] = {}
    left: list[Loadable] = list(reversed(recipes))
    bad = list[str]()
    while left:
        recipe = left.pop()
        if id(recipe) not in seen:
            seen[id(recipe)] = recipe
            if isinstance(recipe, Uncounted) and recipe.is_counted:
                bad.extend(recipe.left_out)
            else:
                left.extend(recipe.inputs)
    return bad


def same_length(length: int, partition: Partition) -> Partition:
    """Return a partition if it still has as many samples as were counted."""
    if len(partition) != length:
        raise DataError(
            f"SampleSet: expected the {length:,} samples that were counted in a partition, found "
            f"{len(partition):,} when it was loaded again; let its source and its functions give "
            "the same each time, or persist() it before"
        )
    return partition
