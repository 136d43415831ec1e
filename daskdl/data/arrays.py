"""Arrays: named columns in memory, a partition and its own recipe."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.data.partition import Batch, Indices, Partition
from daskdl.data.ragged import Ragged
from daskdl.data.recipe import Recipe


@dataclass(frozen=True)
class Arrays(Partition, Recipe):
    """Named columns with a common first axis: a partition, and its own recipe.

    Parameters
    ----------
    arrays : dict of array or Ragged
    bad : tuple of str
        Names of records that were left out as they are no samples, each with the reason.
    """

    arrays: Batch
    bad: tuple[str, ...] = ()

    in_memory = True

    @property
    def nbytes(self) -> int:
        """Bytes held; of columns of objects at a guess from some."""
        return sum(map(_bytes_of, self.arrays.values()))

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
