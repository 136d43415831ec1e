"""Rows: the gradient of a table, as the rows that a batch used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.vectors.embedding import add_rows, row_gradient
from daskdl.kernels.vectors.reduce import squares_between

Array = NDArray[Any]


@dataclass(frozen=True)
class Rows:
    """An immutable array (N, C) that is zero except in some rows.

    Parameters
    ----------
    ids : int64 (U,)
        Numbers of these rows, strictly increasing.
    values : float (U, C)
    shape : (N, C)

    Examples
    --------
    >>> a = Rows(np.array([1, 4]), np.ones((2, 3)), (6, 3))
    >>> b = Rows(np.array([4, 5]), np.ones((2, 3)), (6, 3))
    >>> (a + b).ids, (a + b).values[:, 0]
    (array([1, 4, 5]), array([1., 2., 1.]))
    """

    ids: NDArray[np.int64]
    values: Array
    shape: tuple[int, ...]

    @classmethod
    def of(cls, ids: Array, gradient: Array, n_rows: int) -> Rows:
        """Return the gradient of a table of ``n_rows`` from the gradient (..., C) of rows taken.

        The ids (...) may have any order; gradients of equal ids are added in this order.
        """
        touched, values = row_gradient(ids, gradient, n_rows)
        return cls(touched, values, (n_rows, values.shape[1]))

    @classmethod
    def all_of(cls, dense: Array) -> Rows:
        """Return an array (N, C) as Rows with all its rows, also zeros."""
        return cls(np.arange(len(dense)), dense, dense.shape)

    @classmethod
    def none_of(cls, shape: tuple[int, ...]) -> Rows:
        """Return Rows without any row, float32."""
        return cls(np.empty(0, np.int64), np.empty((0, shape[1]), np.float32), shape)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return the joined rows of one table's parts, at least one, with increasing ids."""
        if len(parts) == 1:
            return parts[0]
        ids = np.concatenate([part.ids for part in parts])
        return replace(parts[0], ids=ids, values=np.concatenate([part.values for part in parts]))

    @property
    def nbytes(self) -> int:
        """Bytes of the ids and the rows."""
        return self.ids.nbytes + self.values.nbytes

    def __add__(self, other: Rows) -> Rows:
        """Return the sum: one addition for rows in both, other rows unchanged."""
        ids, values = add_rows(self.ids, self.values, other.ids, other.values)
        return replace(self, ids=ids, values=values)

    def dense(self) -> Array:
        """Return the whole array (N, C)."""
        whole = np.zeros(self.shape, self.values.dtype)
        whole[self.ids] = self.values
        return whole

    def times(self, factor: float) -> Rows:
        """Return the rows times a factor, which is cast to their dtype."""
        return replace(self, values=self.values * self.values.dtype.type(factor))

    def squares(self) -> NDArray[np.float64]:
        """Return the sum of the squares of each row, (U,)."""
        ends = np.arange(len(self.ids) + 1) * self.values.shape[1]
        return squares_between(self.values.reshape(-1), ends[:-1], ends[1:])

    def part(self, start: int, stop: int) -> Rows:
        """Return the rows with ids from ``start`` to before ``stop``; they keep their ids."""
        first, last = np.searchsorted(self.ids, (start, stop))
        return replace(self, ids=self.ids[first:last], values=self.values[first:last])
