"""Softmax over the last axis, its logarithm, and cross entropy: one pass over each row.

The row's largest number is subtracted first, so that nothing overflows. NaN or infinity anywhere in
a row makes the whole row NaN, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import ShapeError
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.elementary import exponential
from daskdl.kernels.runtime.jit import fusedjit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_range, over_rows
from daskdl.kernels.runtime.threads import threads
from daskdl.kernels.vectors.reduce import row_dot, row_largest, row_sum

Array = NDArray[Any]

#: Numbers of rows whose exponentials are computed together, in the L1 cache.
BLOCK = 512


def softmax(x: Array) -> Array:
    """Return exp(x) / sum(exp(x)) along the last axis; x (..., C)."""
    return _by_rows(_softmax, x)


def softmax_gradient(y: Array, dy: Array) -> Array:
    """Return the gradient to ``x`` from the result ``y`` and the gradient to ``y``."""
    return _by_rows(_softmax_back, y, dy)


def log_softmax(x: Array) -> Array:
    """Return x - log(sum(exp(x))) along the last axis; x (..., C)."""
    return _by_rows(_log_softmax, x)


def log_softmax_gradient(y: Array, dy: Array) -> Array:
    """Return the gradient to ``x`` from the result ``y`` and the gradient to ``y``."""
    return _by_rows(_log_softmax_back, y, dy)


def cross_entropy(logits: Array, labels: Array) -> tuple[NDArray[np.float64], Array]:
    """Return -log softmax(logits)[label] of each row, float64, and the gradient's scales.

    Scales (rows, 2) are each row's largest number and the reciprocal of its sum of exponentials. A
    label outside ``range(C)`` raises a ShapeError.
    """
    rows, numbers = rows_of(logits), flat(labels, np.int64)
    losses, scales = np.empty(len(rows)), np.empty((len(rows), 2), logits.dtype)
    bad = np.zeros(threads(), np.bool_)  # of each part
    over_range(_cross_entropy, len(rows), least_rows(rows), rows, numbers, losses, scales, bad)
    if bad.any():
        classes = logits.shape[-1]
        wrong = int(labels[(labels < 0) | (labels >= classes)].flat[0])
        raise ShapeError(f"cross_entropy: expected labels from 0 to {classes - 1}, found {wrong}")
    return losses, scales


def cross_entropy_gradient(logits: Array, labels: Array, scales: Array, factor: float) -> Array:
    """Return the gradient of ``factor * sum(losses)`` to the logits."""
    rows, numbers = rows_of(logits), flat(labels, np.int64)
    result = empty(rows.shape, rows.dtype)
    weight = rows.dtype.type(factor)
    parts = rows, numbers, scales, result
    over_rows(_cross_entropy_back, parts, least_rows(rows), weight)
    return result.reshape(logits.shape)


def rows_of(x: Array) -> Array:
    """Return the rows (rows, C) of x (..., C), read-only."""
    n = x.size // x.shape[-1] if x.shape[-1] else 0
    return flat(x).reshape(n, x.shape[-1])


def least_rows(rows: Array) -> int:
    """Return the least number of rows of a part, if each number takes an exponential."""
    return grain.least(grain.EXPONENTIAL, rows.shape[1])


def _by_rows(kernel: Any, *inputs: Array) -> Array:
    matrices = [rows_of(np.asarray(x, inputs[0].dtype)) for x in inputs]
    result = empty(matrices[0].shape, matrices[0].dtype)

    over_rows(kernel, (*matrices, result), least_rows(result))
    return result.reshape(inputs[0].shape)


@fusedjit
def _exponentials(x, first, stop, tops, results, start):
    """Write exponentials of rows less their largest from ``start`` on, and the largest to ``tops``.

    One loop covers all rows: a loop over a few classes would be too short for vectors.
    """
    to = start
    for r in range(first, stop):
        top = tops[r - first] = row_largest(x, r)
        for c in range(x.shape[1]):
            results[np.uintp(to + c)] = x[r, c] - top
        to += x.shape[1]
    for k in range(start, to):
        results[np.uintp(k)] = exponential(results[np.uintp(k)])


@fusedjit
def _softmax(x, y):
    one, rows = x.dtype.type(1), 1 + BLOCK // x.shape[1]
    tops, results = np.empty(rows, x.dtype), y.reshape(y.size)
    for first in range(0, x.shape[0], rows):
        stop = min(first + rows, x.shape[0])
        _exponentials(x, first, stop, tops, results, first * x.shape[1])
        for r in range(first, stop):
            scale = one / row_sum(y, r)
            for c in range(x.shape[1]):
                y[r, c] *= scale


@fusedjit
def _softmax_back(y, dy, dx):
    for r in range(y.shape[0]):
        dot = row_dot(y, dy, r, y.shape[1])
        for c in range(y.shape[1]):
            dx[r, c] = y[r, c] * (dy[r, c] - dot)


@fusedjit
def _log_softmax(x, y):
    rows = 1 + BLOCK // x.shape[1]
    tops, results = np.empty(rows, x.dtype), y.reshape(y.size)
    for first in range(0, x.shape[0], rows):
        stop = min(first + rows, x.shape[0])
        _exponentials(x, first, stop, tops, results, first * x.shape[1])
        for r in range(first, stop):
            top, rest = tops[r - first], x.dtype.type(np.log(row_sum(y, r)))
            for c in range(x.shape[1]):
                y[r, c] = (x[r, c] - top) - rest


@fusedjit
def _log_softmax_back(y, dy, dx):
    zero = y.dtype.type(0)
    for r in range(y.shape[0]):
        total = row_sum(dy, r)
        for c in range(y.shape[1]):
            dx[r, c] = dy[r, c] - exponential(min(y[r, c], zero)) * total


@fusedjit
def _cross_entropy(logits, labels, losses, scales, bad, which, start, end):
    """Compute some rows; mark the part if a label is out of range."""
    one, rows = logits.dtype.type(1), 1 + BLOCK // logits.shape[1]
    tops, scratch = np.empty(rows, logits.dtype), np.empty((rows, logits.shape[1]), logits.dtype)
    results = scratch.reshape(scratch.size)
    for first in range(start, end, rows):
        stop = min(first + rows, end)
        _exponentials(logits, first, stop, tops, results, 0)
        for r in range(first, stop):
            label, top, total = labels[r], tops[r - first], row_sum(scratch, r - first)
            if label < 0 or label >= logits.shape[1]:
                bad[which] = True
                return
            losses[r] = np.log(np.float64(total)) - (logits[r, label] - top)
            scales[r, 0], scales[r, 1] = top, one / total


@fusedjit
def _cross_entropy_back(logits, labels, scales, result, factor):
    for r in range(logits.shape[0]):
        top, scale = scales[r, 0], factor * scales[r, 1]
        for c in range(logits.shape[1]):
            result[r, c] = scale * exponential(logits[r, c] - top)
        result[r, labels[r]] -= factor
