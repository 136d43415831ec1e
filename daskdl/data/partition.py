"""Partition: samples that a worker holds."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.batches import permutation, weighted
from daskdl.data.nested import flat
from daskdl.data.ragged import Ragged
from daskdl.errors import DataError

#: Columns by name: arrays, or Ragged ones, with a common first axis.
Batch = dict[str, Any]
Indices = NDArray[np.int64]


class Partition(ABC):
    """Samples in memory.

    A class of your own defines the number of samples (``__len__``) and returns some of them
    (:meth:`take`); :class:`~daskdl.data.Arrays` holds named arrays.

    Examples
    --------
    >>> class Squares(Partition):
    ...     def __len__(self):
    ...         return 5
    ...     def take(self, indices):
    ...         return {"x": indices[:, None] ** 2.0}
    >>> Squares().take(np.array([1, 3]))["x"].ravel()
    array([1., 9.])
    """

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, indices: Indices) -> Batch:
        """Return the samples at these positions as arrays with a common first axis, by name.

        The arrays are the caller's: a function of ``SampleSet.map`` may change them.
        """

    @property
    def nbytes(self) -> int:
        """Bytes in memory; by default the bytes of one sample times the number of samples."""
        one = self.take(np.arange(min(1, len(self)))).values()
        return len(self) * sum(int(column.nbytes) for column in one)

    def __sizeof__(self) -> int:  # what dask asks when it accounts for a worker's memory
        return self.nbytes

    @property
    def bad(self) -> tuple[str, ...]:
        """Names of bad records that were left out, each with the reason."""
        return ()

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights (k,) of samples after the last position, from which each epoch draws."""
        return np.empty(0)

    def pick(self, indices: Indices) -> Partition:
        """Return a partition of only the samples at these positions."""
        return ColumnPartition(self.take(indices), self.bad)

    def order(self, seed: int, epoch: int, shard: int) -> Indices:
        """Return all positions in the order of an epoch, int64 (n,).

        It is a permutation, drawn anew for each epoch and shard. A partition that holds only some
        samples at a time has another order. With :attr:`weights` each sample occurs as often as its
        weight says, to within one.
        """
        if len(self.weights):
            return len(self) + weighted(self.weights.tobytes(), len(self), seed, epoch, shard)
        return permutation(seed, epoch, shard, len(self))


@dataclass(frozen=True)
class ColumnPartition(Partition):
    """Named columns with a common first axis; see :class:`~daskdl.data.Arrays`."""

    arrays: Batch
    bad: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrays", flat(self.arrays))

    @property
    def nbytes(self) -> int:
        """Bytes in memory; for columns of objects an estimate from some values."""
        return sum(map(_bytes_of, self.arrays.values()))

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values()), ()))

    def take(self, indices: Indices) -> Batch:
        """Return copies of the samples at these positions."""
        return {name: array[np.asarray(indices)] for name, array in self.arrays.items()}


def texts_of(batch: Batch, column: str, name: str) -> Any:
    """Return a batch's column of texts; raise a DataError that begins with ``name`` without it."""
    if column not in batch:
        raise DataError(
            f"{name}: expected samples with {column!r}, found {sorted(batch)}"
            "; give the texts' name by column="
        )
    return batch[column]


def _bytes_of(column: Any) -> int:
    if isinstance(column, Ragged) or column.dtype != object or not column.size:
        return int(column.nbytes)
    some = column.ravel()[:: -(-column.size // 100)]
    each = [getattr(value, "nbytes", None) or sys.getsizeof(value) for value in some]
    return int(column.nbytes + sum(each) * column.size // len(each))
