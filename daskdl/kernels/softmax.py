"""Softmax over the last axis, its logarithm, and cross entropy: one pass over each row.

The row's largest number is subtracted first, so that nothing overflows; NaN anywhere in a row makes
the whole row NaN, and so does infinity, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from daskdl.errors import ShapeError
from daskdl.kernels.elementary import exponential
from daskdl.kernels.jit import fastjit, fusedjit
from daskdl.kernels.memory import empty
from daskdl.kernels.passes import flat
from daskdl.kernels.threads import in_parallel

Array = NDArray[Any]

#: Elements below which a second thread costs more than it brings.
LEAST = 1 << 14


def softmax(x: Array) -> Array:
    """Return exp(x) / sum(exp(x)) along the last axis; x (..., C)."""
    return _by_rows(_softmax, x)


def softmax_gradient(y: Array, dy: Array) -> Array:
    """Return the gradient to ``x`` from the result and the gradient to it."""
    return _by_rows(_softmax_back, y, dy)


def log_softmax(x: Array) -> Array:
    """Return x - log(sum(exp(x))) along the last axis; x (..., C)."""
    return _by_rows(_log_softmax, x)


def log_softmax_gradient(y: Array, dy: Array) -> Array:
    """Return the gradient to ``x`` from the result and the gradient to it."""
    return _by_rows(_log_softmax_back, y, dy)


def cross_entropy(logits: Array, labels: Array) -> tuple[NDArray[np.float64], Array]:
    """Return -log softmax(logits)[label] of each row, and what the gradient needs.

    Parameters
    ----------
    logits : array (..., C)
    labels : integer array (...)

    Returns
    -------
    losses : float64 array (rows,)
    scales : array (rows, 2)
        Each row's largest number and the inverse of its sum of exponentials.

    Raises
    ------
    ShapeError
        When a label is not in ``range(C)``.
    """
    rows, numbers = _rows(logits), flat(labels, np.int64)
    losses, scales = np.empty(len(rows)), np.empty((len(rows), 2), logits.dtype)
    bad = in_parallel(
        lambda i, j: _cross_entropy(rows[i:j], numbers[i:j], losses[i:j], scales[i:j]),
        len(rows),
        least=_least(rows),
    )
    if max(bad) >= 0:
        classes = logits.shape[-1]
        found = int(labels[(labels < 0) | (labels >= classes)].flat[0])
        raise ShapeError(f"cross_entropy: expected labels from 0 to {classes - 1}, found {found}")
    return losses, scales


def cross_entropy_gradient(logits: Array, labels: Array, scales: Array, factor: float) -> Array:
    """Return the gradient of ``factor * sum(losses)`` to the logits."""
    rows, numbers = _rows(logits), flat(labels, np.int64)
    result = empty(rows.shape, rows.dtype)
    weight = rows.dtype.type(factor)
    in_parallel(
        lambda i, j: _cross_entropy_back(rows[i:j], numbers[i:j], scales[i:j], weight, result[i:j]),
        len(rows),
        least=_least(rows),
    )
    return result.reshape(logits.shape)


def _rows(x: Array) -> Array:
    n = x.size // x.shape[-1] if x.shape[-1] else 0
    return flat(x).reshape(n, x.shape[-1])


def _least(rows: Array) -> int:
    return max(1, LEAST // max(1, rows.shape[1]))


def _by_rows(kernel: Any, *inputs: Array) -> Array:
    matrices = [_rows(np.asarray(x, inputs[0].dtype)) for x in inputs]
    result = empty(matrices[0].shape, matrices[0].dtype)

    def part(i: int, j: int) -> None:
        kernel(*(m[i:j] for m in matrices), result[i:j])

    in_parallel(part, len(result), least=_least(result))
    return result.reshape(inputs[0].shape)


def _largest(row):  # type: ignore[no-untyped-def]
    """Return the largest number of a vector, NaN if there is one that is not negative."""
    return max(row)


@overload(_largest)
def _largest_overload(row):  # type: ignore[no-untyped-def]
    if row.dtype != types.float32:

        def plain(row):  # type: ignore[no-untyped-def]
            top = row[0]
            for c in range(row.size):
                top = row[c] if row[c] > top else top
            return top

        return plain
    lowest, rest, sign = np.int32(-(2**31)), np.int32(0x7FFFFFFF), np.int32(31)

    # As integers, with the digits of negative ones turned, floats keep their order; and unlike
    # that of floats, their largest is found in vectors.
    def implementation(row):  # type: ignore[no-untyped-def]
        top = lowest
        for c in range(row.size):
            bits = np.float32(row[c]).view(np.int32)
            key = np.int32(bits ^ ((bits >> sign) & rest))
            top = max(top, key)
        return np.int32(top ^ ((top >> sign) & rest)).view(np.float32)

    return implementation


@fastjit
def _sum(row):  # type: ignore[no-untyped-def]
    total = row.dtype.type(0)
    for c in range(row.size):
        total += row[c]
    return total


@fastjit
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = a.dtype.type(0)
    for c in range(a.size):
        total += a[c] * b[c]
    return total


@fusedjit
def _exponentials(row, result):  # type: ignore[no-untyped-def]
    """Write the exponentials of what is left when the largest is subtracted; return that."""
    top = _largest(row)
    for c in range(row.size):
        result[c] = exponential(row[c] - top)
    return top


@fusedjit
def _softmax(x, y):  # type: ignore[no-untyped-def]
    one = x.dtype.type(1)
    for r in range(x.shape[0]):
        row, result = x[r], y[r]
        _exponentials(row, result)
        scale = one / _sum(result)
        for c in range(row.size):
            result[c] *= scale


@fusedjit
def _softmax_back(y, dy, dx):  # type: ignore[no-untyped-def]
    for r in range(y.shape[0]):
        row, up, result = y[r], dy[r], dx[r]
        dot = _dot(row, up)
        for c in range(row.size):
            result[c] = row[c] * (up[c] - dot)


@fusedjit
def _log_softmax(x, y):  # type: ignore[no-untyped-def]
    for r in range(x.shape[0]):
        row, result = x[r], y[r]
        top = _exponentials(row, result)
        rest = x.dtype.type(np.log(_sum(result)))
        for c in range(row.size):
            result[c] = (row[c] - top) - rest


@fusedjit
def _log_softmax_back(y, dy, dx):  # type: ignore[no-untyped-def]
    zero = y.dtype.type(0)
    for r in range(y.shape[0]):
        row, up, result = y[r], dy[r], dx[r]
        total = _sum(up)
        for c in range(row.size):
            result[c] = up[c] - exponential(min(row[c], zero)) * total


@fusedjit
def _cross_entropy(logits, labels, losses, scales):  # type: ignore[no-untyped-def]
    """Return the first row whose label is out of range, or -1."""
    scratch = np.empty(logits.shape[1], logits.dtype)
    one = logits.dtype.type(1)
    for r in range(logits.shape[0]):
        label = labels[r]
        if label < 0 or label >= scratch.size:
            return r
        row = logits[r]
        top = _exponentials(row, scratch)
        total = _sum(scratch)
        losses[r] = np.log(np.float64(total)) - (row[label] - top)
        scales[r, 0], scales[r, 1] = top, one / total
    return -1


@fusedjit
def _cross_entropy_back(logits, labels, scales, factor, result):  # type: ignore[no-untyped-def]
    for r in range(logits.shape[0]):
        row, d = logits[r], result[r]
        top, scale = scales[r, 0], factor * scales[r, 1]
        for c in range(row.size):
            d[c] = scale * exponential(row[c] - top)
        d[labels[r]] -= factor
