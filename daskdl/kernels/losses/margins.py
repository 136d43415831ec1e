"""The multilabel margin of rows of scores: sums and slopes in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit, jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]


def multilabel_margin(prediction: Array, labels: Array) -> tuple[Array, Array]:
    """Return each row's sum of max(0, 1 - x[right] + x[wrong]), (N,), and its slopes, (N, C).

    Labels int64 (N, K): the classes that are right, up to the first -1; all others are of range(C).
    """
    prediction = np.require(prediction, requirements=("C", "A", "W"))
    labels = np.require(labels, np.int64, ("C", "A", "W"))
    sums, slopes = (
        np.empty(len(labels), prediction.dtype),
        empty(prediction.shape, prediction.dtype),
    )
    least = grain.least(grain.STREAM, prediction.shape[1] * max(1, labels.shape[1]))
    over_range(_rows, len(labels), least, prediction, labels, sums, slopes)
    return sums, slopes


@fastjit
def _one(x, r, right, wrong, slopes):
    """Add one right class; return the sum and the number of wrong ones within the margin."""
    total, count = x.dtype.type(0), x.dtype.type(0)
    above = x.dtype.type(1) - x[r, right]
    for c in range(x.shape[1]):
        short = above + x[r, c]
        # NaN is within, so that it shows.
        within = x.dtype.type(0) if short <= 0 else wrong[c]
        total += short * within
        count += within
        slopes[r, c] += within
    return total, count


@jit
def _rows(prediction, labels, sums, slopes, which, start, stop):
    zero, one = prediction.dtype.type(0), prediction.dtype.type(1)
    wrong = np.empty(prediction.shape[1], prediction.dtype)
    for r in range(start, stop):
        count = 0
        while count < labels.shape[1] and labels[r, count] != -1:
            count += 1
        for c in range(wrong.size):
            wrong[c], slopes[r, c] = one, zero
        for k in range(count):
            wrong[labels[r, k]] = zero
        sums[r] = zero
        for k in range(count):
            total, within = _one(prediction, r, labels[r, k], wrong, slopes)
            sums[r] += total
            slopes[r, labels[r, k]] -= within
