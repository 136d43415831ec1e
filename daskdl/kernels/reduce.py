"""Sums over any axes, in float64, with the same bits whatever the number of threads."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.jit import fastjit
from daskdl.kernels.passes import flat
from daskdl.kernels.threads import in_parallel

Array = NDArray[Any]

#: Elements that are summed by themselves; these sums are added in their order.
BLOCK = 1 << 15

#: Columns that are summed together; their sums stay in the nearest cache.
TILE = 1 << 11

#: Elements below which a second thread costs more than it brings.
LEAST = 1 << 16


def sum_over(x: Array, axes: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the sums of a float array over some of its axes, each named once from 0.

    Returns
    -------
    float64 array
        With the other axes' shape.
    """
    kept = tuple(n for axis, n in enumerate(x.shape) if axis not in axes)
    # Neighbours of one kind are one axis.
    groups = [
        (reduced, math.prod(x.shape[axis] for axis in group))
        for reduced, group in (
            (key, list(group)) for key, group in groupby(range(x.ndim), lambda a: a in axes)
        )
    ]
    result = flat(x)
    shape, kinds = [n for _, n in groups], [reduced for reduced, _ in groups]
    while any(kinds):  # the last one first
        at = len(kinds) - 1 - kinds[::-1].index(True)
        lead, trail = math.prod(shape[:at]), math.prod(shape[at + 1 :])
        result = _sum(result.reshape(lead, shape[at], trail))
        del shape[at], kinds[at]
    return result.reshape(kept).astype(np.float64, copy=False)


def sum_of_squares(x: Array) -> float:
    """Return the sum of all squares, in float64 and with the same bits whatever the threads."""
    vector = flat(x)
    sums = np.zeros(-(-vector.size // BLOCK))
    in_parallel(
        lambda i, j: _squares(vector[i * BLOCK : j * BLOCK], sums[i:j]),
        len(sums),
        least=max(1, LEAST // BLOCK),
    )
    return float(sums.sum())


def _sum(x: Array) -> NDArray[np.float64]:
    """Sum (A, R, B) over the middle axis."""
    lead, n, trail = x.shape
    rows = max(TILE if trail == 1 else 64, BLOCK // max(1, trail))  # of a block
    blocks, tiles = -(-n // rows), -(-trail // TILE)
    sums = np.zeros((lead, blocks, trail))
    if sums.size:
        lined = sums.reshape(lead * blocks, trail)
        items = max(1, LEAST // (min(rows, n) * min(trail, TILE)))
        kernel, array = (_rows, x.reshape(lead, n)) if trail == 1 else (_columns, x)
        in_parallel(
            lambda i, j: kernel(array, i, j, blocks, rows, lined),
            lead * blocks * tiles,
            least=items,
        )
    return sums[:, 0] if blocks == 1 else sums.sum(1)


@fastjit
def _rows(x, start, stop, blocks, rows, sums):  # type: ignore[no-untyped-def]
    for item in range(start, stop):
        first = item % blocks * rows
        part = x[item // blocks, first : first + rows]
        total = 0.0
        for k in range(part.size):
            total += np.float64(part[k])
        sums[item, 0] = total


@fastjit
def _columns(x, start, stop, blocks, rows, sums):  # type: ignore[no-untyped-def]
    tiles = (x.shape[2] + TILE - 1) // TILE
    for item in range(start, stop):
        block, tile = item // tiles, item % tiles
        lead, first = block // blocks, block % blocks * rows
        total = sums[block, tile * TILE : (tile + 1) * TILE]
        for r in range(first, min(first + rows, x.shape[1])):
            row = x[lead, r, tile * TILE : (tile + 1) * TILE]
            for c in range(row.size):
                total[c] += np.float64(row[c])


@fastjit
def _squares(x, sums):  # type: ignore[no-untyped-def]
    for block in range(sums.size):
        part = x[block * BLOCK : (block + 1) * BLOCK]
        total = 0.0
        for k in range(part.size):
            total += np.float64(part[k]) * np.float64(part[k])
        sums[block] = total
