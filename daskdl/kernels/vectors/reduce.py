"""Sums over any axes, with the same bits for any number of threads.

Sums are float64, but short runs of numbers are first summed in their own dtype: this loses as much
as rounding the result, and takes half the time. Functions of one row, for kernels that loop over
rows, take a matrix and the row's number: a slice inside a loop counts references, which takes
longer than a row of a few numbers.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit, jit
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]

#: Elements of a block; each block is summed alone, and the sums are added in order.
BLOCK = 1 << 15

#: Columns that are summed together; their sums stay in the L1 cache.
TILE = 1 << 11

#: Elements that are summed in their own dtype, in the lanes of a register.
RUN = 512

#: Parallel sums, which a processor adds at a time.
LANES = 16
#: Words of a lane that are summed in registers before sums in memory change.
TOGETHER = 8


def sum_over(x: Array, axes: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the sums, float64, of a float array over some axes, distinct and counted from 0."""
    remaining, groups = _groups(x.shape, axes)
    shape, kinds = [n for _, n in groups], [reduced for reduced, _ in groups]
    result = flat(x)
    while any(kinds):  # the last one first
        at = len(kinds) - 1 - kinds[::-1].index(True)
        lead, trail = math.prod(shape[:at]), math.prod(shape[at + 1 :])
        result = _sum(result.reshape(lead, shape[at], trail))
        del shape[at], kinds[at]
    return result.reshape(remaining).astype(np.float64, copy=False)


@lru_cache
def _groups(
    shape: tuple[int, ...], axes: tuple[int, ...]
) -> tuple[tuple[int, ...], list[tuple[bool, int]]]:
    """Return the remaining shape, and groups of neighbouring axes: (whether summed, length)."""
    remaining = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    groups = groupby(range(len(shape)), lambda axis: axis in axes)
    return remaining, [(kind, math.prod(shape[axis] for axis in group)) for kind, group in groups]


def squares_between(
    x: Array, starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the sum of squares of each stretch of a vector, float64 (k,).

    Stretches of at most about :data:`BLOCK` numbers can be shared evenly among threads.
    """
    vector, sums = flat(x), np.zeros(len(starts))
    over_range(_squares, len(sums), grain.least(grain.SUM, BLOCK), vector, starts, stops, sums)
    return sums


def _sum(x: Array) -> NDArray[np.float64]:
    """Sum (A, R, B) over the middle axis."""
    lead, n, trail = x.shape
    rows = max(TILE if trail == 1 else 64, BLOCK // max(1, trail))  # of a block
    blocks, tiles = -(-n // rows), -(-trail // TILE)
    sums = np.zeros((lead, blocks, trail))
    if sums.size:
        vector, lined = x.reshape(-1), sums.reshape(lead * blocks, trail)
        kernel = _rows if trail == 1 else _columns
        least = grain.least(grain.SUM, min(rows, n) * min(trail, TILE))
        over_range(kernel, lead * blocks * tiles, least, vector, n, blocks, rows, lined)
    return sums[:, 0] if blocks == 1 else sums.sum(1)


# Offsets instead of slices, which count references.


@fastjit
def _rows(x, n, blocks, rows, sums, which, start, stop):
    for item in range(start, stop):
        lead, block = (item, 0) if blocks == 1 else (item // blocks, item % blocks)
        first, last = lead * n + block * rows, lead * n + min(n, (block + 1) * rows)
        total = 0.0
        for run in range(first, last, RUN):
            part = x.dtype.type(0)
            for k in range(run, min(run + RUN, last)):
                part += x[np.uintp(k)]
            total += part
        sums[item, 0] = total


@fastjit
def _columns(x, n, blocks, rows, sums, which, start, stop):
    trail = sums.shape[1]
    tiles = (trail + TILE - 1) // TILE
    t = np.uintp(trail)
    for item in range(start, stop):
        block, tile = item // tiles, item % tiles
        total = sums[block, tile * TILE : (tile + 1) * TILE]
        first, last = block % blocks * rows, min(n, (block % blocks + 1) * rows)
        base = block // blocks * n * trail + tile * TILE
        eights = first + (last - first) // 8 * 8
        for r in range(first, eights, 8):
            for c in range(total.size):
                p = np.uintp(base + r * trail + c)
                q = p + np.uintp(4) * t
                upper = (x[p] + x[p + t]) + (x[p + t + t] + x[p + t + t + t])
                lower = (x[q] + x[q + t]) + (x[q + t + t] + x[q + t + t + t])
                total[c] += np.float64(upper + lower)
        for r in range(eights, last):
            for c in range(total.size):
                total[c] += np.float64(x[np.uintp(base + r * trail + c)])


@fastjit
def _squares(x, starts, stops, sums, which, start, stop):
    for block in range(start, stop):
        part = x[starts[block] : stops[block]]
        total = 0.0
        for k in range(part.size):
            total += np.float64(part[k]) * np.float64(part[k])
        sums[block] = total


def row_largest(x, r):
    """Return the largest number of row r; NaN if the row has a NaN without a minus sign."""
    return max(x[r])


@overload(row_largest)
def _largest_of_floats(x, r):
    if x.dtype != types.float32:

        def largest(x, r):
            top = x[r, 0]
            for c in range(x.shape[1]):
                top = x[r, c] if x[r, c] > top else top
            return top

        return largest
    lowest, rest, sign = np.int32(-(2**31)), np.int32(0x7FFFFFFF), np.int32(31)

    # As integers, with the bits of negative ones inverted, floats keep their order; and LLVM
    # vectorises the maximum of integers, but not of floats.
    def implementation(x, r):
        top = lowest
        for c in range(x.shape[1]):
            bits = np.float32(x[r, c]).view(np.int32)
            key = np.int32(bits ^ ((bits >> sign) & rest))
            top = max(top, key)
        return np.int32(top ^ ((top >> sign) & rest)).view(np.float32)

    return implementation


@fastjit
def row_sum(x, r):
    """Return the sum of row r."""
    result = x.dtype.type(0)
    for c in range(x.shape[1]):
        result += x[r, c]
    return result


@fastjit
def row_dot(a, b, r, count):
    """Return the sum of products of the first ``count`` numbers of two arrays' rows r.

    The order of a sum depends on its length, so leave out zeros that fill rows up to a width that
    depends on the processor.
    """
    result = a.dtype.type(0)
    for c in range(count):
        result += a[r, c] * b[r, c]
    return result


def digest(array: NDArray[Any]) -> tuple[object, ...]:
    """Return a digest that differs if any number of an array changes, or any two change places.

    It consists of Fletcher's sums of 64 bits: a sum of words and a sum of these sums, for each of
    `LANES`. It does not protect against deliberate forgery.

    Parameters
    ----------
    array : ndarray
        Array of any dtype.

    Examples
    --------
    >>> weights = np.arange(100, dtype=np.float32)
    >>> before = digest(weights)
    >>> weights[[3, 5]] = weights[[5, 3]]
    >>> digest(weights) == before
    False
    """
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = raw.size - raw.size % (8 * LANES * TOGETHER)
    words = raw[:whole].view(np.uint64).reshape(-1, TOGETHER, LANES)
    sums = np.zeros((2, LANES), np.uint64)
    if len(words):
        _add(words, sums)
    return array.shape, array.dtype.str, sums.tobytes(), raw[whole:].tobytes()


@jit
def _add(words, sums):
    total, twice, zero = np.zeros(LANES, np.uint64), np.zeros(LANES, np.uint64), np.uint64(0)
    for i in range(len(words)):
        for j in range(LANES):
            part, parts = zero, zero
            for k in range(TOGETHER):
                part += words[i, k, j]
                parts += part
            twice[j] += np.uint64(TOGETHER) * total[j] + parts
            total[j] += part
    sums[0], sums[1] = total, twice
