"""Rows divided by their Euclidean length, while a row is in the L1 cache."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[Any]

#: Numbers that are summed in the rows' dtype before the sum is added in float64.
RUN = 1024


def forward(x: Array, eps: float) -> tuple[Array, Array]:
    """Return the rows of x (rows, C) divided by their lengths, and the lengths, float64 (rows,).

    A row shorter than ``eps`` is divided by ``eps``.
    """
    source, new, lengths = flat(x).reshape(x.shape), empty(x.shape, x.dtype), np.empty(len(x))
    over_rows(_forward, (source, new, lengths), grain.least(grain.STREAM, x.shape[1]), eps)
    return new, lengths


def backward(dy: Array, y: Array, lengths: Array, eps: float) -> Array:
    """Return the gradient to ``x`` from the gradient to the result ``y`` of :func:`forward`."""
    gradient, result, new = flat(dy, y.dtype).reshape(y.shape), flat(y), empty(y.shape, y.dtype)
    result = result.reshape(y.shape)
    rows = gradient, result, lengths, new
    over_rows(_backward, rows, grain.least(grain.STREAM, y.shape[1]), eps)
    return new


@fastjit
def _forward(x, new, lengths, eps):
    n, zero = x.shape[1], x.dtype.type(0)
    for r in range(x.shape[0]):
        row, to = x[r], new[r]
        total = 0.0
        for start in range(0, n, RUN):
            part = zero
            for c in range(start, min(start + RUN, n)):
                v = row[np.uintp(c)]
                part += v * v
            total += part
        lengths[r] = np.sqrt(total)
        scale = x.dtype.type(1 / (eps if lengths[r] < eps else lengths[r]))  # NaN stays
        for c in range(n):
            to[c] = row[c] * scale


@fastjit
def _backward(dy, y, lengths, new, eps):
    n, zero = y.shape[1], y.dtype.type(0)
    for r in range(y.shape[0]):
        row, gradient, to = y[r], dy[r], new[r]
        total = 0.0
        for start in range(0, n, RUN):
            part = zero
            for c in range(start, min(start + RUN, n)):
                part += gradient[np.uintp(c)] * row[np.uintp(c)]
            total += part
        clipped = lengths[r] < eps  # then the divisor does not depend on the row
        along = y.dtype.type(0.0 if clipped else total)
        scale = y.dtype.type(1 / (eps if clipped else lengths[r]))
        for c in range(n):
            to[c] = (gradient[c] - along * row[c]) * scale
