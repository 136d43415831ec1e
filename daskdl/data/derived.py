"""Derived recipes: what is made of other partitions, or of the results of Dask's tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from dask.typing import Key

from daskdl.cluster.current import is_future
from daskdl.data.partition import Arrays, Indices, Partition, Recipe
from daskdl.data.transformations import Chosen, Make, Mapped, Range, picked


@dataclass(frozen=True)
class Derived:
    """A partition made of others; of its making only ``make`` travels with the task.

    Parameters
    ----------
    inputs : tuple of Recipe
    make : callable
        From the loaded inputs to the partition. It pickles, and gives the same whenever it is
        called.
    length : int or None
        Samples; None when only loading can tell, see :class:`Uncounted`.
    nbytes : int
        Bytes of the loaded partition.
    """

    inputs: tuple[Recipe, ...]
    make: Make
    length: int | None
    nbytes: int

    @property
    def in_memory(self) -> bool:
        """Whether any input carries its data."""
        return any(recipe.in_memory for recipe in self.inputs)

    def __len__(self) -> int:
        return _counted(self.length)

    def part(self, start: int, stop: int) -> Recipe:
        """Return the recipe of the samples from ``start`` up to ``stop``.

        Of what a function makes sample by sample it is made of the part of its input.
        """
        if isinstance(self.make, Mapped):
            nbytes = self.nbytes * (stop - start) // max(1, len(self))
            some = self.inputs[0].part(start, stop)
            return replace(self, inputs=(some,), length=stop - start, nbytes=nbytes)
        return chosen(self, Range(start, stop), stop - start)

    def load(self) -> Partition:
        """Load the inputs and make the partition of them."""
        return self.make(*(recipe.load() for recipe in self.inputs))


@dataclass(frozen=True)
class FromTasks:
    """A partition made of the results of Dask's tasks, which may lie on the workers already.

    Parameters
    ----------
    tasks : mapping
        The graph behind the keys; a Future stands for what has been computed.
    keys : tuple
        Of the tasks whose results ``make`` is called with.
    make : callable
    length : int or None
    nbytes : int
    """

    tasks: Mapping[Key, Any] = field(repr=False)
    keys: tuple[Key, ...]
    make: Make
    length: int | None
    nbytes: int

    in_memory = False

    @property
    def futures(self) -> tuple[Any, ...]:
        """What has been computed."""
        return tuple(filter(is_future, self.tasks.values()))

    def __len__(self) -> int:
        return _counted(self.length)

    def part(self, start: int, stop: int) -> Recipe:
        """Return the recipe of the samples from ``start`` up to ``stop``."""
        return chosen(self, Range(start, stop), stop - start)

    def load(self) -> Partition:
        """Compute it here."""
        import dask

        held = {future.key: future.result() for future in self.futures}
        tasks = {key: task for key, task in self.tasks.items() if key not in held}
        # Inside a task: another one for it would wait for this worker's own thread.
        return self.make(*dask.get({**tasks, **held}, list(self.keys)))


def _counted(length: int | None) -> int:
    assert length is not None, "samples that are not counted yet"
    return length


@dataclass(frozen=True)
class Loaded:
    """A partition in memory, as its own recipe."""

    partition: Partition = field(repr=False)

    in_memory = True

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.partition.nbytes

    def __len__(self) -> int:
        return len(self.partition)

    def part(self, start: int, stop: int) -> Loaded:
        """Return a partition of the samples from ``start`` up to ``stop``."""
        return Loaded(picked(self.partition, np.arange(start, stop)))

    def load(self) -> Partition:
        """Return the partition."""
        return self.partition


def chosen(recipe: Recipe, which: Callable[[int], Indices], count: int) -> Recipe:
    """Return the recipe of some samples of another.

    Parameters
    ----------
    recipe : Recipe
        One that has a method ``pick(indices)`` makes the new one itself.
    which : callable
        From the number of samples to the positions of those that are wanted, in their order.
    count : int
        How many these are.
    """
    if hasattr(recipe, "pick"):
        return recipe.pick(which(len(recipe)))
    nbytes = recipe.nbytes * count // max(1, len(recipe))
    return Derived((recipe,), Chosen(which), count, nbytes)


def packed(recipe: Recipe) -> Recipe:
    """Return what to send of a recipe that carries its data: not what was not chosen of it."""
    if not isinstance(recipe, Derived) or not recipe.in_memory:
        return recipe
    if isinstance(recipe.make, Chosen) and not isinstance(recipe.inputs[0], Derived):
        partition = recipe.load()
        return partition if isinstance(partition, Arrays) else recipe
    return replace(recipe, inputs=tuple(map(packed, recipe.inputs)))
