"""Payload: the data that shards add up: numbers, rows of tables, and a few sums and maxima."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.rows import Rows

Vector = NDArray[np.float32]

#: Sums, maxima, and rows of each table that come with the numbers; as msgpack sends it.
Header = tuple[list[float], list[float], list[int]]


@dataclass
class Payload:
    """A shard's contribution to a reduction, or a sum of contributions.

    Parameters
    ----------
    vector : float32 (n,)
        The sum may be written into it.
    rows : tuple of Rows
        One for each table, in the order of the reduction's ``tables``.
    sums : tuple of float
        Added up in float64.
    maxima : tuple of float
        A sum keeps the largest of each.
    """

    vector: Vector = field(repr=False)
    rows: tuple[Rows, ...] = field(default=(), repr=False)
    sums: tuple[float, ...] = ()
    maxima: tuple[float, ...] = ()


def add_headers(a: Any, b: Any) -> Any:
    """Add two headers, without numbers of rows; either may be None."""
    if a is None or b is None:
        return b if a is None else a
    sums = [x + y for x, y in zip(a[0], b[0], strict=True)]
    return sums, [max(x, y) for x, y in zip(a[1], b[1], strict=True)], []
