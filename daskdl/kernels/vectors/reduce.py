"""Sums over any axes, with the same bits for any number of threads.

Sums are float64, but short runs of numbers are first summed in their own dtype: this loses as much
as rounding the result, and takes half the time.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]

#: Elements of a block; each block is summed alone, and the sums are added in order.
BLOCK = 1 << 15

#: Columns that are summed together; their sums stay in the L1 cache.
TILE = 1 << 11

#: Elements that are summed in their own dtype, in the lanes of a register.
RUN = 512


def sum_over(x: Array, axes: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the sums, float64, of a float array over some axes, distinct and counted from 0."""
    kept, groups = _groups(x.shape, axes)
    shape, kinds = [n for _, n in groups], [reduced for reduced, _ in groups]
    result = flat(x)
    while any(kinds):  # the last one first
        at = len(kinds) - 1 - kinds[::-1].index(True)
        lead, trail = math.prod(shape[:at]), math.prod(shape[at + 1 :])
        result = _sum(result.reshape(lead, shape[at], trail))
        del shape[at], kinds[at]
    return result.reshape(kept).astype(np.float64, copy=False)


@lru_cache
def _groups(
    shape: tuple[int, ...], axes: tuple[int, ...]
) -> tuple[tuple[int, ...], list[tuple[bool, int]]]:
    """Return the remaining shape, and groups of neighbouring axes: (whether summed, length)."""
    kept = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    groups = groupby(range(len(shape)), lambda axis: axis in axes)
    return kept, [(kind, math.prod(shape[axis] for axis in group)) for kind, group in groups]


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
