"""Biases: one number for each channel, added to results that are channels last."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_rows
from daskdl.kernels.vectors.reduce import sum_over

Array = NDArray[Any]

#: Dtypes that are added up by compiled loops, others by numpy.
FLOATS = np.float32, np.float64

#: Numbers of a part below which a second thread costs more than it brings.
LEAST = 1 << 15


def add_bias(y: Array, bias: Array) -> None:
    """Do ``y += bias``, to the bits of numpy's; y (..., C) and bias (C,)."""
    if y.dtype not in FLOATS or not y.flags.c_contiguous:
        y += bias
    elif y.size:
        rows = y.reshape(-1, y.shape[-1])
        over_rows(_add, (rows,), max(1, LEAST // y.shape[-1]), flat(bias, y.dtype))


def bias_gradient(dy: Array) -> Array:
    """Return the sums of dy (..., C) over all axes but the last."""
    axes = tuple(range(dy.ndim - 1))
    return sum_over(dy, axes).astype(dy.dtype) if dy.dtype in FLOATS else dy.sum(axes)


@jit
def _add(y, bias):
    vector = y.reshape(-1)
    for start in range(0, vector.size, bias.size):
        for c in range(bias.size):
            vector[np.uintp(start + c)] += bias[c]
