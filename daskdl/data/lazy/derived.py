"""Derived recipes: partitions made of other partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from daskdl.data.lazy.transformations import MapBatches, Range, Select, Transformation
from daskdl.data.partition import Partition
from daskdl.data.recipe import Arrays, Loadable, Positions, Recipe


class Derived(Recipe):
    """A partition made of others; a task carries the transformation only, not the inputs.

    The transformation pickles, and always gives the same result. The length is None until loading
    shows it, see :class:`~daskdl.data.lazy.counting.Uncounted`.
    """

    def __init__(
        self,
        inputs: Sequence[Loadable],
        transform: Transformation,
        length: int | None,
        nbytes: int,
    ) -> None:
        self._inputs, self.transform = tuple(inputs), transform
        self._length, self._nbytes = length, nbytes

    @property
    def inputs(self) -> Sequence[Loadable]:
        """The inputs of the transformation."""
        return self._inputs

    @property
    def nbytes(self) -> int:
        """Bytes of the loaded partition."""
        return self._nbytes

    @property
    def in_memory(self) -> bool:
        """Whether any input carries its data."""
        return any(one.in_memory for one in self.inputs)

    @property
    def decodes(self) -> bool:
        """Whether a function makes the samples, here or in an input."""
        return isinstance(self.transform, MapBatches) or super().decodes

    @property
    def is_shuffled(self) -> bool:
        """Whether ``SampleSet.shuffle`` made the samples, here or in an input."""
        shuffles = isinstance(self.transform, Select) and self.transform.is_shuffle
        return shuffles or super().is_shuffled

    def __len__(self) -> int:
        assert self._length is not None, "samples that are not counted yet"
        return self._length

    def part(self, start: int, stop: int) -> Recipe:
        """Return the recipe of the samples from ``start`` up to ``stop``.

        If a function makes the samples one by one, it is derived from a part of the input.
        """
        (one, *others) = self.inputs
        if isinstance(self.transform, MapBatches) and isinstance(one, Recipe) and not others:
            nbytes = self.nbytes * (stop - start) // max(1, len(self))
            return Derived([part_of(one, start, stop)], self.transform, stop - start, nbytes)
        return _selected(self, Range(start, stop), stop - start)

    def load(self) -> Partition:
        """Load the inputs and make the partition of them."""
        return self.transform(*(one.load() for one in self.inputs))

    def for_sending(self) -> Recipe:
        """Return a recipe of the same samples without unselected data."""
        if not self.in_memory:
            return self
        if isinstance(self.transform, Select) and not isinstance(self.inputs[0], Derived):
            partition = self.load()
            return partition if isinstance(partition, Arrays) else self
        inputs = [one.for_sending() if isinstance(one, Recipe) else one for one in self.inputs]
        return Derived(inputs, self.transform, self._length, self.nbytes)


def part_of(recipe: Recipe, start: int, stop: int) -> Recipe:
    """Return the recipe of the samples from ``start`` up to ``stop`` of another."""
    part = recipe.part(start, stop)
    return _selected(recipe, Range(start, stop), stop - start) if part is None else part


def select_from(recipe: Recipe, positions: Positions, count: int) -> Recipe:
    """Return the recipe of ``count`` samples of another; see :meth:`Recipe.select`."""
    selected = recipe.select(positions, count)
    return _selected(recipe, positions, count) if selected is None else selected


def _selected(recipe: Recipe, positions: Positions, count: int) -> Derived:
    nbytes = recipe.nbytes * count // max(1, len(recipe))
    return Derived([recipe], Select(positions), count, nbytes)


@dataclass(frozen=True)
class Loaded(Recipe):
    """A partition in memory, as its own recipe."""

    partition: Partition = field(repr=False)

    in_memory = True

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.partition.nbytes

    def __len__(self) -> int:
        return len(self.partition)

    def part(self, start: int, stop: int) -> Loaded:
        """Return a partition of the samples from ``start`` up to ``stop``."""
        return Loaded(self.partition.pick(np.arange(start, stop)))

    def load(self) -> Partition:
        """Return the partition."""
        return self.partition
