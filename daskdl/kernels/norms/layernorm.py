"""Layer normalisation of rows: statistics and result while a row is in the L1 cache.

J. Ba et al., Layer Normalization, arXiv 1607.06450.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import n_fixed, over_parts, over_rows

Array = NDArray[Any]

#: Numbers, and rows, that are summed in the rows' dtype before the sums are added in float64.
RUN, BLOCK = 1024, 64


def forward(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array]:
    """Return normalised rows (rows, C), and mean and 1 / deviation (rows, 2) for backward.

    ``eps`` is added to the variance.
    """
    rows, channels = x.shape
    source, new = flat(x).reshape(x.shape), empty(x.shape, x.dtype)
    weight, bias = flat(weight, x.dtype), flat(bias, x.dtype)
    scales = np.empty((rows, 2), x.dtype)
    least = grain.least(grain.STREAM, channels)
    over_rows(_forward, (source, new, scales), least, weight, bias, eps)
    return new, scales


def backward(dy: Array, x: Array, weight: Array, scales: Array) -> tuple[Array, Array]:
    """Return the gradient to ``x``, and those to weight and bias, float64 (2, C)."""
    rows, channels = x.shape
    source, gradient = flat(x).reshape(x.shape), flat(dy, x.dtype).reshape(x.shape)
    weight, new = flat(weight, x.dtype), empty(x.shape, x.dtype)

    least = grain.least(grain.STREAM, channels)
    totals = np.zeros((n_fixed(rows, least), 2, channels))  # of parts
    over_parts(_backward, rows, least, gradient, source, weight, scales, new, totals)
    return new, totals.sum(0)


@fastjit
def _forward(x, new, scales, weight, bias, eps):
    n, zero = x.shape[1], x.dtype.type(0)
    for r in range(x.shape[0]):
        row, to = x[r], new[r]
        total = 0.0
        for start in range(0, n, RUN):
            part = zero
            for c in range(start, min(start + RUN, n)):
                part += row[np.uintp(c)]
            total += part
        mean = x.dtype.type(total / n)
        total = 0.0
        for start in range(0, n, RUN):
            part = zero
            for c in range(start, min(start + RUN, n)):
                d = row[np.uintp(c)] - mean
                part += d * d
            total += part
        inverse = x.dtype.type(1 / np.sqrt(total / n + eps))
        scales[r, 0], scales[r, 1] = mean, inverse
        for c in range(n):
            to[c] = (row[c] - mean) * inverse * weight[c] + bias[c]


@fastjit
def _backward(dy, x, weight, scales, new, parts, which, start, stop):
    n, zero = x.shape[1], x.dtype.type(0)
    sums = np.zeros((2, n), x.dtype)
    to_weight, to_bias, totals = sums[0], sums[1], parts[which]
    for r in range(start, stop):
        row, gradient, to = x[r], dy[r], new[r]
        mean, inverse = scales[r, 0], scales[r, 1]
        total, slope = 0.0, 0.0
        for run in range(0, n, RUN):
            part, along = zero, zero
            for c in range(run, min(run + RUN, n)):
                p = np.uintp(c)
                g, d = gradient[p], (row[p] - mean) * inverse
                to_weight[p] += g * d
                to_bias[p] += g
                part += g * weight[p]
                along += g * weight[p] * d
            total += part
            slope += along
        offset, tilt = x.dtype.type(total / n), x.dtype.type(slope / n)
        for c in range(n):
            d = (row[c] - mean) * inverse
            to[c] = inverse * (gradient[c] * weight[c] - offset - tilt * d)
        if (r - start) % BLOCK == BLOCK - 1:
            totals += sums
            sums[:] = 0
    totals += sums
