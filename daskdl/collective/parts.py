"""Parts: which numbers of a vector, and which rows of a table, belong to a span of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.plan import Span
from daskdl.kernels.vectors.arithmetic import copy_to

Array = NDArray[Any]

#: Numbers of a cache line: parts begin at whole multiples of it.
UNIT = 16


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
