"""A model's weights in the layout of inference's kernels, prepared once for all threads."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from daskdl.kernels.products.affine import Affine
from daskdl.kernels.runtime.precision import precision
from daskdl.kernels.vectors.embedding import gather
from daskdl.tensor import Array

#: Most bytes of the products of all rows of a table.
MOST_BYTES = 64_000_000


class Prepared:
    """Prepared weights of a model whose memory is ``arrays``, by their use.

    Only weights in the model's own memory are kept: if a pass computes a weight, its memory may be
    used again for another one. Weights must not change while this object is used.
    """

    def __init__(self, arrays: Iterable[Array]) -> None:
        ranges = sorted(_range(array) for array in arrays if array.size)
        self._starts = [start for start, _ in ranges]
        self._stops = [stop for _, stop in ranges]
        self._made: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def key(self, *arrays: Array | None) -> tuple[Any, ...] | None:
        """Return the key of these arrays; None unless all are the model's own."""
        places: list[Any] = []
        for array in arrays:
            if array is None:
                places.append(None)
                continue
            start = array.__array_interface__["data"][0]
            i = bisect.bisect_right(self._starts, start) - 1
            if i < 0 or start >= self._stops[i]:
                return None
            places.append((start, array.shape, array.strides))
        return tuple(places)

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the object made for a key in this thread's precision.

        The first thread that asks makes it; others wait.
        """
        key = key, precision()
        made = self._made.get(key)
        if made is None:
            with self._lock:
                made = self._made.get(key)
                if made is None:
                    made = self._made[key] = make()
        return made


def _range(array: Array) -> tuple[int, int]:
    start, stop = np.lib.array_utils.byte_bounds(array)
    return int(start), int(stop)


class Taken(NamedTuple):
    """The rows of a table that make up a result."""

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
    """Products of a table's rows (rows, in) with weights, computed by row or for the whole table.

    Both ways give the same bits. Rows are multiplied when they are taken, until their number
    reaches the table's. Then the whole table is multiplied once, and later products are looked up:
    a text of a few hundred words then costs only reading. The work is at most twice the least
    possible. Tables whose products would take more than :data:`MOST_BYTES` are not multiplied as a
    whole. The row ``padding`` counts as zeros.
    """

    def __init__(self, table: Array, affine: Affine, padding: int | None) -> None:
        self._table, self._affine, self._padding = table, affine, padding
        small = len(table) * affine.filters * table.itemsize <= MOST_BYTES
        self._remaining = len(table) if small else None
        self._products: Array | None = None
        self._lock = threading.Lock()

    def __call__(self, taken: Taken) -> Array:
        """Return the products (..., out) with rows of the table, in a new array."""
        if self._remaining is not None and self._products is None:
            with self._lock:
                self._remaining -= taken.ids.size
                if self._remaining < 0 and self._products is None:
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
