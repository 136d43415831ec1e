"""Transformations: functions that make a partition of another one, lazily and on any worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.data.batches import generator
from daskdl.data.functions import Function, checked, name_of, take
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.data.ragged import concatenated
from daskdl.data.recipe import Arrays, Positions
from daskdl.errors import DataError

#: From loaded inputs to a partition; it pickles, and gives the same whenever it is called.
Transformation = Callable[..., Partition]

#: Purpose of the permutation by which a partition of a shuffle is ordered.
SHUFFLED = "shuffled"


@dataclass(frozen=True)
class Select:
    """Keep the samples at some positions."""

    positions: Positions

    @property
    def is_shuffle(self) -> bool:
        """Whether ``SampleSet.shuffle`` drew the positions."""
        return isinstance(self.positions, Permuted) and self.positions.purpose == SHUFFLED

    def __call__(self, partition: Partition) -> Partition:
        """Return a partition of them."""
        return partition.pick(self.positions(len(partition)))


@dataclass(frozen=True)
class Range:
    """Positions from ``start`` up to ``stop``."""

    start: int
    stop: int

    def __call__(self, length: int) -> Indices:
        """Return the positions in a partition of so many samples."""
        return np.arange(self.start, self.stop)


@dataclass(frozen=True)
class Permuted:
    """Positions at places ``start`` up to ``stop`` of a random permutation of all.

    Only its seed is sent; the permutation is drawn on the worker.
    """

    seed: int
    purpose: str
    number: int
    start: int
    stop: int
    sort: bool = False

    def __call__(self, length: int) -> Indices:
        """Return the positions in a partition of so many samples."""
        order = generator(self.seed, self.purpose, self.number).permutation(length)
        some: Indices = order[self.start : self.stop]
        return np.sort(some) if self.sort else some


@dataclass(frozen=True)
class MapBatches:
    """Call a function with ``size`` samples at a time, and hold its results."""

    function: Callable[[Batch], Batch]
    size: int

    def __call__(self, partition: Partition) -> Arrays:
        """Return a partition of the results."""
        pieces = [
            checked(self.function, self.function(partition.take(where)), len(where))
            for where in stretches(len(partition), self.size)
        ]
        if not pieces:
            return Arrays({}, partition.bad)
        arrays = {name: concatenated([p[name] for p in pieces]) for name in pieces[0]}
        return Arrays(arrays, partition.bad)


def filtered(
    predicate: Callable[[Batch], Any], functions: Sequence[Function], partition: Partition
) -> Partition:
    """Return a partition of the samples, after functions, for which a predicate holds."""
    masks = [np.zeros(0, bool)]
    for where in stretches(len(partition), 1024):
        mask = np.asarray(predicate(take(partition, where, functions, (0, "plain"))))
        if mask.dtype != bool or mask.shape != (len(where),):
            raise DataError(
                f"SampleSet.filter: expected {name_of(predicate)} to return {len(where)} booleans, "
                f"found {mask.dtype} {mask.shape}; compare, as in lambda batch: batch['y'] > 0"
            )
        masks.append(mask)
    return partition.pick(np.flatnonzero(np.concatenate(masks)))


def itself(value: Any) -> Any:
    """Return the value."""
    return value


def stretches(length: int, size: int) -> list[Indices]:
    """Return the positions 0 up to ``length`` in stretches of ``size``."""
    return [np.arange(a, min(a + size, length)) for a in range(0, length, size)]
