"""Payload: the numbers, rows of tables, sums and maxima that shards add up, and parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.plan import Span
from daskdl.kernels.vectors.arithmetic import copy_to
from daskdl.rows import Rows

Array = NDArray[Any]
Vector = NDArray[np.float32]

#: Numbers of a cache line: parts begin at whole multiples of it.
UNIT = 16

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


def slice_of(span: Span, size: int, unit: int = UNIT) -> slice:
    """Return the numbers of a vector of ``size`` that belong to a span; maybe none.

    Parameters
    ----------
    span : pair of Fraction
        (start, stop), from 0 to 1.
    size : int
    unit : int
        Slices begin at whole multiples of it.

    Examples
    --------
    >>> from fractions import Fraction
    >>> slice_of((Fraction(1, 3), Fraction(1)), 100)
    slice(32, 100, None)
    """
    start, stop = (size if p == 1 else int(size * p) // unit * unit for p in span)
    return slice(start, stop)


def rows_of(span: Span, rows: int) -> tuple[int, int]:
    """Return the range (first, end) of a table's ``rows`` that belongs to a span."""
    return int(rows * span[0]), int(rows * span[1])


def join(vector: Array, slices: Sequence[slice]) -> Array:
    """Return the numbers of several slices side by side; a view if there is one slice.

    A scalar, shape (), belongs to every part.
    """
    if not vector.ndim:
        return vector
    if len(slices) == 1:
        return vector[slices[0]]
    return np.concatenate([vector[s] for s in slices])


def split(values: Array, vector: Array, slices: Sequence[slice]) -> None:
    """Undo :func:`join`: write adjacent numbers to their slices of ``vector``."""
    start = 0
    for s in slices:
        stop = start + s.stop - s.start
        copy_to(vector[s], values[start:stop])
        start = stop
