"""Embedding tables: rows by their ids, and their gradient as (ids, rows).

Their cost grows with the ids, not with the table. Also joins of channels in one pass: rows of
several arrays side by side, or alternating.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import ShapeError
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_range, over_rows, work_over_range
from daskdl.kernels.runtime.threads import threads

Array = NDArray[Any]

_BITS = 11  # of a digit; each pass of the sort reads one digit


def gather(table: Array, ids: Array) -> Array:
    """Return ``table[ids]``; table (rows, C), ids (...) of any integer dtype -> (..., C).

    An id outside ``range(rows)`` raises a ShapeError that names it.
    """
    matrix, numbers = flat(table).reshape(table.shape), flat(ids, np.int64)
    result = empty((numbers.size, table.shape[1]), table.dtype)
    least, bad = (
        grain.least(grain.STREAM, table.shape[1]),
        np.zeros(threads(), np.bool_),
    )  # for parts
    over_range(_gather, numbers.size, least, matrix, numbers, result, bad)
    if bad.any():
        _refuse(ids, len(table))
    return result.reshape(*ids.shape, table.shape[1])


def row_gradient(ids: Array, gradient: Array, n_rows: int) -> tuple[NDArray[np.int64], Array]:
    """Return the gradient to a table of ``n_rows`` rows as ids (U,) and their rows (U, C).

    ``gradient`` (..., C) is the gradient to the result of :func:`gather` for the ids (...). The
    returned ids increase, each once. A row is the sum over its id's occurrences, added in their
    order: the same bits with any number of threads. An id outside ``range(n_rows)`` raises a
    ShapeError.
    """
    width = gradient.shape[-1]
    numbers, d = flat(ids, np.int64), flat(gradient)
    if not _known(numbers, n_rows):
        _refuse(ids, n_rows)
    order, starts = np.empty(numbers.size, np.int64), np.empty(numbers.size + 1, np.int64)
    unique = np.empty(numbers.size, np.int64)
    n = _segments(numbers, n_rows, order, starts, unique) if numbers.size else 0
    rows = empty((n, width), gradient.dtype)
    d = d.reshape(numbers.size, width)
    least = grain.least(grain.STREAM, width)
    over_range(_sum, n, least, d, order, starts, rows)
    return unique[:n].copy(), rows


def add_rows(
    ids: Array, rows: Array, other_ids: Array, other_rows: Array
) -> tuple[NDArray[np.int64], Array]:
    """Return the sum of two gradients in the form of :func:`row_gradient`.

    A row of only one of them is copied; a row of both is one addition, first plus other.
    """
    at = np.empty((2, ids.size + other_ids.size), np.int64)
    unique = np.empty(ids.size + other_ids.size, np.int64)
    n = _merge(flat(ids), flat(other_ids), at, unique)
    width = rows.shape[1]
    result = empty((n, width), rows.dtype)
    one, other = (flat(a, rows.dtype).reshape(a.shape) for a in (rows, other_rows))
    over_range(_add, n, grain.least(grain.STREAM, width), one, other, at, result)
    return unique[:n].copy(), result


def add_to(table: Array, ids: NDArray[np.int64], rows: Array) -> None:
    """Add rows (U, C) to the rows ``ids`` (U,), each once, of a table (N, C), in place."""
    width = table.shape[1]
    pairs = flat(ids), flat(rows, table.dtype).reshape(rows.shape)
    over_rows(_add_to, pairs, grain.least(grain.STREAM, width), table)


def put_rows(table: Array, ids: NDArray[np.int64], rows: Array) -> None:
    """Write rows (U, C) to the rows ``ids`` (U,), each once, of a table (N, C), in place."""
    pairs = flat(ids), flat(rows, table.dtype).reshape(rows.shape)
    over_rows(_put, pairs, grain.least(grain.STREAM, table.shape[1]), table)


def _refuse(ids: Array, n_rows: int) -> None:
    """Raise a ShapeError for the first id outside the table."""
    bad = int(ids[(ids < 0) | (ids >= n_rows)].flat[0])
    if not n_rows:
        raise ShapeError(f"embedding: expected a table with rows, found none for id {bad}")
    raise ShapeError(
        f"embedding: expected ids from 0 to {n_rows - 1}, the rows of the table, found {bad}"
    )


@jit
def _gather(table, ids, result, bad, which, start, stop):
    """Copy rows; mark the part if an id is out of range."""
    n = np.uint64(table.shape[0])
    for k in range(start, stop):
        if np.uint64(ids[k]) >= n:  # a negative id becomes large
            bad[which] = True
            return
        source, sink = table[ids[k]], result[k]
        for c in range(sink.size):
            sink[c] = source[c]


@jit
def _known(ids, n_rows):
    """Return whether all ids are in ``range(n_rows)``."""
    known = True
    for k in range(ids.size):
        known &= 0 <= ids[k] < n_rows
    return known


@jit
def _segments(ids, n_rows, order, starts, unique):
    """Sort positions by id, equal ids by position; return the number of different ids.

    This is a radix sort, digit by digit from the lowest. The positions of ``unique[u]`` begin at
    ``starts[u]`` in ``order``.
    """
    n = ids.size
    other = np.empty_like(order)
    counts = np.empty((1 << _BITS) + 1, np.int64)
    for k in range(n):
        order[k] = k
    shift = 0
    while shift == 0 or (n_rows - 1) >> shift:
        counts[:] = 0
        for k in range(n):
            counts[((ids[k] >> shift) & ((1 << _BITS) - 1)) + 1] += 1
        for digit in range(1 << _BITS):
            counts[digit + 1] += counts[digit]
        for k in range(n):
            digit = (ids[order[k]] >> shift) & ((1 << _BITS) - 1)
            other[counts[digit]] = order[k]
            counts[digit] += 1
        order[:] = other
        shift += _BITS
    count = 0
    for k in range(n):
        if k == 0 or ids[order[k]] != ids[order[k - 1]]:
            unique[count] = ids[order[k]]
            starts[count] = k
            count += 1
    starts[count] = n
    return count


@jit
def _sum(gradient, order, starts, rows, which, start, stop):
    for u in range(start, stop):
        row, first = rows[u], gradient[order[starts[u]]]
        for c in range(row.size):
            row[c] = first[c]
        for k in range(starts[u] + 1, starts[u + 1]):
            more = gradient[order[k]]
            for c in range(row.size):
                row[c] += more[c]


@jit
def _merge(ids, other, at, unique):
    """Write all ids, and each one's place in either array, or -1; return the number of ids."""
    i = j = count = 0
    while i < ids.size or j < other.size:
        first = j == other.size or (i < ids.size and ids[i] <= other[j])
        second = i == ids.size or (j < other.size and other[j] <= ids[i])
        unique[count] = ids[i] if first else other[j]
        at[0, count] = i if first else -1
        at[1, count] = j if second else -1
        i, j, count = i + first, j + second, count + 1
    return count


@jit
def _add(rows, other, at, result, which, start, stop):
    for u in range(start, stop):
        row, i, j = result[u], at[0, u], at[1, u]
        one = rows[i] if i >= 0 else other[j]
        for c in range(row.size):
            row[c] = one[c]
        if i >= 0 and j >= 0:
            more = other[j]
            for c in range(row.size):
                row[c] += more[c]


@jit
def _add_to(ids, rows, table):
    for u in range(ids.size):
        row, more = table[ids[u]], rows[u]
        for c in range(row.size):
            row[c] += more[c]


@jit
def _put(ids, rows, table):
    for u in range(ids.size):
        row, new = table[ids[u]], rows[u]
        for c in range(row.size):
            row[c] = new[c]


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
            over_range(copy_rows, len(part), least, part, rows, first)
        first += part.shape[1]
    return y


@dataclass(frozen=True)
class InTurns:
    """Alternates numbers of two arrays: ``width`` of each one's last axis from ``first`` on.

    The two may also be the halves of one array along its last axis.
    """

    first: int
    width: int

    def __call__(self, a: Array, b: Array | None = None) -> Array:
        """Return (..., 2 width) from arrays (..., C) of one shape and dtype, C-contiguous.

        Without ``b`` they are the halves of ``a`` (..., 2 C).
        """
        y = empty((*a.shape[:-1], 2 * self.width), a.dtype)
        if y.size:
            self.work_of(y, a, b)()
        return y

    def work_of(self, y: Array, a: Array, b: Array | None = None) -> Callable[[], object]:
        """Return a function without arguments that writes a call's result to ``y``.

        It is bound to its arrays and threads. ``y`` is C-contiguous and not empty.
        """
        second = self.first + (a.shape[-1] // 2 if b is None else 0)
        rows = [x.reshape(-1, x.shape[-1]) for x in (a, a if b is None else b, y)]
        least = grain.least(grain.STREAM, 2 * self.width)
        return work_over_range(_take_turns, len(rows[0]), least, *rows, self.first, second)


@jit
def _take_turns(a, b, y, first, second, which, start, stop):
    """Write the rows ``start`` to ``stop``."""
    wide, width = a.shape[1], y.shape[1] // 2
    ones, others, to = a.reshape(-1), b.reshape(-1), y.reshape(-1)
    for r in range(start, stop):
        at, begin = np.uintp(r * wide + first), np.uintp(2 * r * width)
        other = np.uintp(r * wide + second)
        for c in range(width):
            to[begin + np.uintp(2 * c)] = ones[at + np.uintp(c)]
            to[begin + np.uintp(2 * c + 1)] = others[other + np.uintp(c)]


@jit
def copy_rows(source, target, first, which, start, stop):
    """Copy the rows ``start`` to ``stop`` to the columns from ``first`` on."""
    width, wide = source.shape[1], target.shape[1]
    a, b = source.reshape(-1), target.reshape(-1)
    for r in range(start, stop):
        begin, to = np.uintp(r * width), np.uintp(r * wide + first)
        for c in range(width):
            b[to + np.uintp(c)] = a[begin + np.uintp(c)]
