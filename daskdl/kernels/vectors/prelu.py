"""PReLU: a rectifier with a learned slope per channel; one pass forward, one pass backward."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.passes import UNIT, flat
from daskdl.kernels.runtime.team import over_range, over_rows

Array = NDArray[Any]


def forward(x: Array, slope: Array) -> Array:
    """Return ``x`` where positive and ``slope * x`` elsewhere; x (..., C), slope (C,) or (1,)."""
    rows, slopes = _rows(x, slope)
    y = np.empty_like(rows)
    over_rows(_forward, (rows, y), _least(rows), slopes)
    return y.reshape(x.shape)


def backward(x: Array, slope: Array, dy: Array) -> tuple[Array, Array]:
    """Return the gradients to ``x`` and to ``slope`` from the gradient to ``y``."""
    rows, slopes = _rows(x, slope)
    up = flat(dy, x.dtype).reshape(rows.shape)
    dx = np.empty_like(rows)
    # A sum for each block: the same bits with any number of threads.
    block = max(1, 16 * UNIT // max(1, rows.shape[1]))
    sums = np.zeros((-(-len(rows) // block), rows.shape[1]), np.float64)

    over_range(_backward, len(sums), 1, rows, slopes, up, dx, sums, block)
    d_slope = sums.sum(0) if slope.size == rows.shape[1] else sums.sum().reshape(1)
    return dx.reshape(x.shape), d_slope.astype(slope.dtype)


def _rows(x: Array, slope: Array) -> tuple[Array, Array]:
    rows = flat(x).reshape(-1, x.shape[-1])
    return rows, flat(np.broadcast_to(slope, rows.shape[1:]), x.dtype)


def _least(rows: Array) -> int:
    return grain.least(grain.STREAM, rows.shape[1])


@fastjit
def _forward(x, y, slope):
    zero = x.dtype.type(0)
    for i in range(x.shape[0]):
        for c in range(x.shape[1]):
            y[i, c] = x[i, c] if x[i, c] > zero else slope[c] * x[i, c]


@fastjit
def _backward(x, slope, dy, dx, sums, block, which, start, stop):
    zero = x.dtype.type(0)
    for i in range(start * block, min(stop * block, x.shape[0])):
        for c in range(x.shape[1]):
            below = zero if x[i, c] > zero else dy[i, c]
            dx[i, c] = dy[i, c] if x[i, c] > zero else slope[c] * dy[i, c]
            sums[i // block, c] += below * x[i, c]
