"""Joins of channels in one pass: rows of several arrays side by side, or alternating."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.team import over_range, work_over_range

Array = NDArray[Any]


def side_by_side(*arrays: Array) -> Array:
    """Return arrays (..., C) of one dtype, C-contiguous, joined along their last axis.

    numpy's ``concatenate`` takes several times as long if rows are short.
    """
    width = sum(a.shape[-1] for a in arrays)
    y = empty((*arrays[0].shape[:-1], width), arrays[0].dtype)
    rows, first = y.reshape(-1, width), 0
    least = grain.least(grain.STREAM, width)
    for array in arrays:
        part = array.reshape(len(rows), array.shape[-1])
        if array.size:
            over_range(_copy, len(part), least, part, rows, first)
        first += part.shape[1]
    return y


@dataclass(frozen=True)
class InTurns:
    """Alternates numbers of two arrays: ``width`` of each one's last axis from ``first`` on."""

    first: int
    width: int

    def __call__(self, a: Array, b: Array) -> Array:
        """Return (..., 2 width) from arrays (..., C) of one shape and dtype, C-contiguous."""
        y = empty((*a.shape[:-1], 2 * self.width), a.dtype)
        if y.size:
            self.work_of(y, a, b)()
        return y

    def work_of(self, y: Array, a: Array, b: Array) -> Callable[[], object]:
        """Return a function without arguments that writes a call's result to ``y``.

        It is bound to its arrays and threads. ``y`` is C-contiguous and not empty.
        """
        rows = [x.reshape(-1, x.shape[-1]) for x in (a, b, y)]
        least = grain.least(grain.STREAM, 2 * self.width)
        return work_over_range(_take_turns, len(rows[0]), least, *rows, self.first)


@jit
def _take_turns(a, b, y, first, which, start, stop):
    """Write the rows ``start`` to ``stop``."""
    wide, width = a.shape[1], y.shape[1] // 2
    ones, others, to = a.reshape(-1), b.reshape(-1), y.reshape(-1)
    for r in range(start, stop):
        at, begin = np.uintp(r * wide + first), np.uintp(2 * r * width)
        for c in range(width):
            to[begin + np.uintp(2 * c)] = ones[at + np.uintp(c)]
            to[begin + np.uintp(2 * c + 1)] = others[at + np.uintp(c)]


@jit
def _copy(source, target, first, which, start, stop):
    """Copy the rows ``start`` to ``stop`` to the columns from ``first`` on."""
    width, wide = source.shape[1], target.shape[1]
    a, b = source.reshape(-1), target.reshape(-1)
    for r in range(start, stop):
        begin, to = np.uintp(r * width), np.uintp(r * wide + first)
        for c in range(width):
            b[to + np.uintp(c)] = a[begin + np.uintp(c)]
