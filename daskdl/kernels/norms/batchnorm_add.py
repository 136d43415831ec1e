"""Batch normalisation plus another array, in one pass over memory.

The end of a residual block (K. He et al., arXiv 1512.03385), ``max((x - mean) * scale + bias +
residual, 0)``, reads both arrays and writes one; separate norm, sum and ReLU would move more than
twice as much. Backward, one pass adds the gradients from a block's two readers, sets those to zero
that the ReLU blocked, and computes the sums for the normalisation's gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.norms.batchnorm import (
    BLOCK,
    ROW,
    SUM_ROW,
    in_rows,
    lanes_of,
    repeats,
    result_for,
    sums_of,
    two_sums,
)
from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.passes import drain, flat, put

Array = NDArray[Any]


def normalise_plus(
    x: Array, residual: Array, mean: Array, scale: Array, bias: Array, floor: float
) -> Array:
    """Return ``(x - mean) * scale + bias + residual``, or ``floor`` where that is larger.

    Mean, scale and bias are float64 (C,); the floor is 0 for a ReLU, NaN for none.
    """
    source, added, (new, past) = flat(x), flat(residual, x.dtype), result_for(x)
    lanes = lanes_of(source, repeats(mean.size, ROW), mean, scale, bias)
    in_rows(put_sum, x, (source, added, new), lanes, x.dtype.type(floor), past)
    return new.reshape(x.shape)


def gradient_plus(
    dy: Array, more: Array | None, y: Array, x: Array, mean: Array
) -> tuple[Array, Array]:
    """Return ``dy + more`` where ``y`` is positive and 0 elsewhere, and its two sums by channel.

    ``dy`` and ``more`` are the gradients to ``y`` from one or two readers; ``y`` is the result of
    :func:`normalise_plus` for ``x`` with a floor of 0. The sums, float64 (2, C), are of the
    gradient and of ``gradient * (x - mean)`` over all rows.
    """
    source, (new, past) = flat(x), result_for(x, SUM_ROW)
    lanes = lanes_of(source, repeats(mean.size, SUM_ROW), mean)
    second = None if more is None else flat(more, x.dtype)
    arguments = flat(y, x.dtype), flat(dy, x.dtype), second, source, new, lanes, past
    return new.reshape(x.shape), two_sums(sums_of(_put_gradient, x, *arguments), lanes, mean)


@fastjit
def _put_gradient(y, dy, more, x, new, lanes, past, parts, which, begin, end):
    """Write rows ``begin`` to ``end`` of lanes, and add their sums (2, width) to parts[which]."""
    mean, totals = lanes[0], parts[which]
    width, zero = mean.size, x.dtype.type(0)
    sums = np.zeros((2, width), x.dtype)
    s, q = sums[0], sums[1]
    last = min(end * width, x.size)
    for first in range(begin * width, last, BLOCK * width):
        for start in range(first, min(first + BLOCK * width, last), width):
            for c in range(min(width, last - start)):
                p = np.uintp(start + c)
                g = dy[p] if more is None else dy[p] + more[p]
                g = zero if y[p] <= zero else g
                put(new, start + c, g, past)
                s[c] += g
                q[c] += g * (x[p] - mean[c])
        totals += sums
        sums[:] = 0
    drain(past)


@fastjit
def put_sum(x, residual, new, lanes, floor, past):
    """Write (x - mean) * scale + bias of the lanes plus the residual, or the floor, to ``new``."""
    mean, scale, bias = lanes[0], lanes[1], lanes[2]
    width = mean.size
    for first in range(0, x.size, width):
        for c in range(min(width, x.size - first)):
            p = np.uintp(first + c)
            v = (x[p] - mean[c]) * scale[c] + bias[c] + residual[p]
            put(new, first + c, floor if v < floor else v, past)  # NaN stays
    drain(past)
