"""Makes: what makes a partition of another one, or says which of its samples are wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.data.functions import checked, name_of
from daskdl.data.partition import Arrays, Batch, Indices, Partition
from daskdl.data.ragged import concatenated
from daskdl.data.random import generator
from daskdl.errors import DataError

#: From loaded partitions to another; it pickles, and gives the same whenever it is called.
Make = Callable[..., Partition]

#: Purpose of the draw by which a partition of a shuffle is ordered.
SHUFFLED = "shuffled"


def picked(partition: Partition, indices: Indices) -> Partition:
    """Return a partition of some of its samples; the rest can be forgotten."""
    if hasattr(partition, "pick"):
        return partition.pick(indices)
    return Arrays(partition.take(indices), getattr(partition, "bad", ()))


@dataclass(frozen=True)
class Chosen:
    """Makes a partition of some samples of another."""

    which: Callable[[int], Indices]

    def __call__(self, partition: Partition) -> Partition:
        """Make it."""
        return picked(partition, self.which(len(partition)))


@dataclass(frozen=True)
class Range:
    """The positions from ``start`` up to ``stop``."""

    start: int
    stop: int

    def __call__(self, length: int) -> Indices:
        """Return the positions of so many samples that are wanted."""
        return np.arange(self.start, self.stop)


@dataclass(frozen=True)
class Drawn:
    """Places ``start`` to ``stop`` of a permutation, which is drawn where it is needed."""

    seed: int
    purpose: str
    number: int
    start: int
    stop: int
    sort: bool = False

    def __call__(self, length: int) -> Indices:
        """Return the positions of so many samples that are wanted."""
        order = generator(self.seed, self.purpose, self.number).permutation(length)
        some: Indices = order[self.start : self.stop]
        return np.sort(some) if self.sort else some


@dataclass(frozen=True)
class Mapped:
    """Makes a partition of what a function returns for stretches of another's samples."""

    function: Callable[[Batch], Batch]
    size: int

    def __call__(self, partition: Partition) -> Arrays:
        """Make it."""
        bad: tuple[str, ...] = getattr(partition, "bad", ())
        pieces = [
            checked(self.function, self.function(partition.take(where)), len(where))
            for where in stretches(len(partition), self.size)
        ]
        if not pieces:
            return Arrays({}, bad)
        return Arrays({name: concatenated([p[name] for p in pieces]) for name in pieces[0]}, bad)


@dataclass(frozen=True)
class Filtered:
    """Makes a partition of the samples for which a predicate holds.

    Parameters
    ----------
    predicate : callable
        From a batch to a boolean for each sample.
    take : callable
        From a partition and positions to what the predicate sees.
    """

    predicate: Callable[[Batch], Any]
    take: Callable[[Partition, Indices], Batch]

    def __call__(self, partition: Partition) -> Partition:
        """Make it."""
        masks = [np.zeros(0, bool)]
        for where in stretches(len(partition), 1024):
            mask = np.asarray(self.predicate(self.take(partition, where)))
            if mask.dtype != bool or mask.shape != (len(where),):
                raise DataError(
                    f"SampleSet.filter: expected {name_of(self.predicate)} to return "
                    f"{len(where)} booleans, found {mask.dtype} {mask.shape}"
                )
            masks.append(mask)
        return picked(partition, np.flatnonzero(np.concatenate(masks)))


def stretches(length: int, size: int) -> list[Indices]:
    """Return the positions in stretches of so many."""
    return [np.arange(a, min(a + size, length)) for a in range(0, length, size)]


def is_shuffle(recipe: Any) -> bool:
    """Return whether a recipe stands on a partition of :meth:`SampleSet.shuffle`."""
    which = getattr(getattr(recipe, "make", None), "which", None)
    if isinstance(which, Drawn) and which.purpose == SHUFFLED:
        return True
    return any(map(is_shuffle, getattr(recipe, "inputs", ())))
