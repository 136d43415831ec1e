"""Cross entropy with weighted rows, soft targets or logarithms; softmax.py has the plain one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.losses.softmax import least_rows, rows_of
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.elementary import exponential
from daskdl.kernels.runtime.jit import fastjit, fusedjit, jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_range, over_rows
from daskdl.kernels.runtime.threads import threads

Array = NDArray[Any]


def gradient(
    logits: Array,
    labels: Array,
    scales: Array,
    factors: Array,
    spread: Array | None = None,
    shared: Array | None = None,
) -> Array:
    """Return the gradient of ``sum(factors * losses)`` to the logits (..., C).

    ``scales`` (rows, 2) come from :func:`daskdl.kernels.losses.softmax.cross_entropy` or
    :func:`soft`. A row whose factors are 0 gets zeros, even if it is not finite. ``spread`` (rows,)
    are factors of the losses of the soft target ``shared`` (C,), whose gradient is added.
    """
    rows = rows_of(logits)
    dtype, result = rows.dtype, empty(rows.shape, rows.dtype)
    numbers, hits = flat(labels, np.int64), flat(factors, dtype)
    others, same = np.zeros(len(rows) if spread is not None else 0, dtype), np.zeros(0, dtype)
    if spread is not None and shared is not None:
        others, same = others + np.asarray(spread, dtype), same_dtype(shared, dtype)
    total = dtype.type(same.sum(dtype=np.float64))

    parts = rows, numbers, scales, hits, others, result
    over_rows(_gradient, parts, least_rows(rows), same, total)
    return result.reshape(logits.shape)


def soft(logits: Array, targets: Array) -> tuple[NDArray[np.float64], Array]:
    """Return -sum(target * log softmax(logits)) of each row, float64, and the gradient's scales.

    Logits (..., C), targets (rows, C). Scales (rows, 2) are each row's largest number and the
    reciprocal of its sum of exponentials.
    """
    rows, shares = rows_of(logits), rows_of(np.asarray(targets, logits.dtype))
    losses, scales = np.empty(len(rows)), np.empty((len(rows), 2), logits.dtype)

    over_rows(_soft, (rows, shares, losses, scales), least_rows(rows))
    return losses, scales


def shared_target(logits: Array, shared: Array, tops: Array) -> NDArray[np.float64]:
    """Return sum(shared * (logits - top)) of each row; shared (C,), tops (rows,)."""
    rows, result = rows_of(logits), np.empty(len(tops))
    target, offsets = same_dtype(shared, rows.dtype), flat(tops, rows.dtype)

    over_rows(_shared_target, (rows, offsets, result), least_rows(rows), target)
    return result


def soft_gradient(logits: Array, targets: Array, scales: Array, factors: Array) -> Array:
    """Return the gradient of ``sum(factors * losses)`` to the logits; targets (rows, C)."""
    rows, shares = rows_of(logits), rows_of(np.asarray(targets, logits.dtype))
    result, weights = empty(rows.shape, rows.dtype), flat(factors, rows.dtype)

    over_rows(_soft_gradient, (rows, shares, scales, weights, result), least_rows(rows))
    return result.reshape(logits.shape)


def nll(x: Array, labels: Array, shares: Array) -> NDArray[np.float64] | None:
    """Return -share * x[label] of each row of x (..., C); None if a label is not in ``range(C)``.

    Shares are (rows,), or (1,) for all; a row whose share is 0 gives 0, even if it is not finite.
    """
    rows, numbers, hits = rows_of(x), flat(labels, np.int64), flat(shares, np.float64)
    losses, bad = np.empty(len(rows)), np.zeros(threads(), np.bool_)
    over_range(_nll, len(rows), grain.STREAM, rows, numbers, hits, losses, bad)
    return None if bad.any() else losses


def nll_gradient(x: Array, labels: Array, shares: Array, factors: Array) -> Array:
    """Return the gradient of ``sum(factors * losses)`` of :func:`nll` to ``x``.

    Factors are (N,), one for each of N equal stretches of rows, or (1,) for all.
    """
    rows, numbers, hits = rows_of(x), flat(labels, np.int64), flat(shares, np.float64)
    result, each = empty(rows.shape, rows.dtype), flat(factors, np.float64)
    least = grain.least(grain.SUM, rows.shape[1])
    over_range(_nll_back, len(rows), least, numbers, hits, each, result)
    return result.reshape(x.shape)


def same_dtype(x: Array, dtype: Any) -> Array:
    """Return a contiguous writable copy, so that a kernel is compiled for one kind of array."""
    return np.array(x, dtype, order="C")


@fusedjit
def _gradient(logits, labels, scales, factors, spread, result, shared, total):
    zero = logits.dtype.type(0)
    for r in range(logits.shape[0]):
        share = spread[r] if spread.size else zero
        mass = factors[r] + share * total
        if factors[r] == 0 and share == 0:
            for c in range(logits.shape[1]):
                result[r, c] = zero
            continue
        top, scale = scales[r, 0], mass * scales[r, 1]
        for c in range(logits.shape[1]):
            result[r, c] = scale * exponential(logits[r, c] - top)
        if share != 0:
            for c in range(logits.shape[1]):
                result[r, c] -= share * shared[c]
        result[r, labels[r]] -= factors[r]


@fusedjit
def _soft(logits, targets, losses, scales):
    one, scratch = logits.dtype.type(1), np.empty(logits.shape[1], logits.dtype)
    for r in range(logits.shape[0]):
        top = logits[r, 0]
        for c in range(scratch.size):
            top = logits[r, c] if logits[r, c] > top else top
        for c in range(scratch.size):
            scratch[c] = exponential(logits[r, c] - top)
        sum_, mass, dot = 0.0, 0.0, 0.0
        for c in range(scratch.size):
            sum_ += scratch[c]
            mass += targets[r, c]
            dot += targets[r, c] * (logits[r, c] - top)
        losses[r] = mass * np.log(sum_) - dot
        scales[r, 0], scales[r, 1] = top, one / logits.dtype.type(sum_)


@fastjit
def _shared_target(logits, tops, result, target):
    for r in range(logits.shape[0]):
        total = 0.0
        for c in range(logits.shape[1]):
            total += target[c] * (logits[r, c] - tops[r])
        result[r] = total


@fusedjit
def _soft_gradient(logits, targets, scales, factors, result):
    for r in range(logits.shape[0]):
        factor, mass = factors[r], 0.0
        for c in range(logits.shape[1]):
            mass += targets[r, c]
        top, scale = scales[r, 0], logits.dtype.type(factor * mass * scales[r, 1])
        for c in range(logits.shape[1]):
            result[r, c] = scale * exponential(logits[r, c] - top) - factor * targets[r, c]


@jit
def _nll(x, labels, shares, losses, bad, which, start, stop):
    """Compute some rows; mark the part if a label is out of range."""
    for r in range(start, stop):
        label, share = labels[r], shares[r if shares.size > 1 else 0]
        if label < 0 or label >= x.shape[1]:
            bad[which] = True
            return
        losses[r] = 0.0 if share == 0 else share * -np.float64(x[r, label])


@jit
def _nll_back(labels, shares, factors, result, which, start, stop):
    stretch = max(1, labels.size // max(1, factors.size))
    for r in range(start, stop):
        for c in range(result.shape[1]):
            result[r, c] = 0
        result[r, labels[r]] = -(factors[r // stretch] * shares[r if shares.size > 1 else 0])
