"""Folded: rows of a table times weights, for all rows at once where that is worth it."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from daskdl.kernels.products.affine import Affine
from daskdl.kernels.vectors.embedding import gather
from daskdl.tensor import Array

#: Bytes that the products of all rows take at most.
MOST_BYTES = 64_000_000


class Taken(NamedTuple):
    """The rows of a table that a result is made of."""

    table: Array
    ids: Array
    padding: int | None


def rows_of(table: Array, ids: Array, padding: int | None) -> Array:
    """Return rows (..., C) of a table, zeros for the id ``padding``."""
    rows = gather(table, ids)
    if padding is not None:
        rows[ids == padding] = 0
    return rows


class Folded:
    """Products of rows with weights (out, in), of the same bits however they come about.

    Rows are multiplied as they are taken, until as many were as the table has. Then the whole table
    is, once, and its products are looked up from there on: a text of a few hundred words costs what
    reading them takes. All of it together is twice the least work at most, whenever rows end to
    come. Tables whose products would take more than :data:`MOST_BYTES` stay as they are.

    Parameters
    ----------
    table : array (rows, in)
    affine : Affine
    padding : int, optional
        A row that counts as zeros.
    """

    def __init__(self, table: Array, affine: Affine, padding: int | None) -> None:
        self._table, self._affine, self._padding = table, affine, padding
        small = len(table) * affine.filters * table.itemsize <= MOST_BYTES
        self._left = len(table) if small else None
        self._products: Array | None = None
        self._lock = threading.Lock()

    def __call__(self, taken: Taken) -> Array:
        """Return the products (..., out) with rows of the table; the array is the caller's."""
        if self._left is not None and self._products is None:
            with self._lock:
                self._left -= taken.ids.size
                if self._left < 0 and self._products is None:
                    self._products = self._of_all()
        if self._products is not None:
            return gather(self._products, taken.ids)
        return self._affine(rows_of(*taken))

    def _of_all(self) -> Array:
        products: Array = self._affine(self._table)
        if self._padding is not None:
            nothing = np.zeros((1, self._table.shape[1]), self._table.dtype)
            products[self._padding] = self._affine(nothing)[0]
        return products
