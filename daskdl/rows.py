"""Rows: the gradient to a table as the rows that a batch touched."""

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
    """An array (N, C) that is zero in all rows but these; nothing changes it.

    Parameters
    ----------
    ids : int64 (U,)
        Of the rows, increasing, each once.
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
        """Return the gradient to a table of ``n_rows`` from that (..., C) to the rows taken of it.

        The ids (...) come in any order; what is of one id is added in this order.
        """
        touched, values = row_gradient(ids, gradient, n_rows)
        return cls(touched, values, (n_rows, values.shape[1]))

    @classmethod
    def all_of(cls, dense: Array) -> Rows:
        """Return an array (N, C) as all its rows, zeros too."""
        return cls(np.arange(len(dense)), dense, dense.shape)

    @classmethod
    def none_of(cls, shape: tuple[int, ...]) -> Rows:
        """Return no rows of a table, float32."""
        return cls(np.empty(0, np.int64), np.empty((0, shape[1]), np.float32), shape)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return the rows of parts of one table, at least one, whose ids follow each other."""
        if len(parts) == 1:
            return parts[0]
        ids = np.concatenate([part.ids for part in parts])
        return replace(parts[0], ids=ids, values=np.concatenate([part.values for part in parts]))

    @property
    def nbytes(self) -> int:
        """Bytes of the ids and the rows."""
        return self.ids.nbytes + self.values.nbytes

    def __add__(self, other: Rows) -> Rows:
        """Return the sum: of rows that both have one addition, others as they are."""
        ids, values = add_rows(self.ids, self.values, other.ids, other.values)
        return replace(self, ids=ids, values=values)

    def dense(self) -> Array:
        """Return the array (N, C) itself."""
        whole = np.zeros(self.shape, self.values.dtype)
        whole[self.ids] = self.values
        return whole

    def times(self, factor: float) -> Rows:
        """Return the same with each number multiplied by a factor, of their dtype."""
        return replace(self, values=self.values * self.values.dtype.type(factor))

    def squares(self) -> NDArray[np.float64]:
        """Return the sum of the squares of each row, (U,)."""
        ends = np.arange(len(self.ids) + 1) * self.values.shape[1]
        return squares_between(self.values.reshape(-1), ends[:-1], ends[1:])

    def part(self, start: int, stop: int) -> Rows:
        """Return the rows from ``start`` to ``stop``, with the ids that they have here."""
        first, last = np.searchsorted(self.ids, (start, stop))
        return replace(self, ids=self.ids[first:last], values=self.values[first:last])
