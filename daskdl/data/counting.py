"""Counting: recipes that do not know how many samples they have, until these are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from daskdl.data.derived import Derived
from daskdl.data.partition import Partition, Recipe
from daskdl.data.transformations import Chosen, Make, Range
from daskdl.errors import DataError


class Found(NamedTuple):
    """What loading a partition has told."""

    length: int
    nbytes: int
    bad: tuple[str, ...]


def found(partition: Partition, number: int) -> Found:
    """Return what there is to tell of a partition."""
    return Found(len(partition), partition.nbytes, getattr(partition, "bad", ()))


class Uncounted:
    """A recipe that does not know how many samples it has, until they have been counted.

    Parameters
    ----------
    recipe : Recipe
        Of which only loading tells the length.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.bad: tuple[str, ...] = ()
        self.counted: Recipe | None = None

    def learn(self, told: Found) -> None:
        """Take in what has been counted."""
        self.bad = told.bad
        self.counted = Derived((self,), Recounted(told.length), told.length, told.nbytes)

    @property
    def in_memory(self) -> bool:
        """Whether an input carries its data."""
        return self.recipe.in_memory

    @property
    def nbytes(self) -> int:
        """Bytes, at a guess."""
        return self.recipe.nbytes

    def __len__(self) -> int:
        assert self.counted is not None, "samples that are not counted yet"
        return len(self.counted)

    def part(self, start: int, stop: int) -> Recipe:
        """Return the recipe of the samples from ``start`` up to ``stop``."""
        return Derived((self.recipe,), Chosen(Range(start, stop)), stop - start, self.nbytes)

    def load(self) -> Partition:
        """Load it."""
        return self.recipe.load()


def known(recipe: Recipe) -> Recipe:
    """Return the recipe that knows its length, if there is one by now."""
    if isinstance(recipe, Uncounted) and recipe.counted is not None:
        return recipe.counted
    return recipe


def is_counted(recipe: Recipe) -> bool:
    """Return whether its length is known."""
    return not isinstance(known(recipe), Uncounted)


def told_schema(recipe: Recipe) -> dict[str, Any] | None:
    """Return shape and dtype of each array of a sample, if a recipe tells before it is loaded."""
    recipe = recipe.recipe if isinstance(recipe, Uncounted) else recipe
    return dict(getattr(getattr(recipe, "make", None), "schema", {})) or None


def derived(recipe: Recipe, make: Make, same_length: bool = True) -> Recipe:
    """Return the recipe of what is made of another's partition."""
    recipe = known(recipe)
    if same_length and is_counted(recipe):
        return Derived((recipe,), make, len(recipe), recipe.nbytes)
    return Uncounted(Derived((recipe,), make, None, recipe.nbytes))


def left_out(recipes: Sequence[Recipe]) -> list[str]:
    """Return the records that are no samples, behind these recipes, each once."""
    seen: dict[int, Recipe] = {}
    left, bad = list(reversed(recipes)), list[str]()
    while left:
        recipe = left.pop()
        if id(recipe) not in seen:
            seen[id(recipe)] = recipe
            if isinstance(recipe, Uncounted) and recipe.counted is not None:
                bad.extend(recipe.bad)
            else:
                left.extend(getattr(recipe, "inputs", ()))
    return bad


@dataclass(frozen=True)
class Recounted:
    """Sees that a partition still has as many samples as were counted."""

    length: int

    def __call__(self, partition: Partition) -> Partition:
        """Return it if it has."""
        if len(partition) != self.length:
            raise DataError(
                f"SampleSet: expected the {self.length:,} samples that were counted in a "
                f"partition, found {len(partition):,} when it was loaded again; let its source "
                "and its functions give the same each time, or persist() it before"
            )
        return partition
