"""Losses of deviations, margins and logits of yes and no: sums in one pass, slopes in another.

Nothing is kept in between: reading prediction and target again takes less time and memory than
writing and reading each number's loss or slope.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.elementary import logistic, softplus
from daskdl.kernels.runtime.jit import fastjit, fusedjit, jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.passes import drain, flat, put
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]

#: Numbers of a block; each block is summed alone, and the sums are added in order, to the same bits
#: with any number of threads.
BLOCK = 1 << 15

#: Numbers whose weights are looked up together, in the L1 cache.
CHUNK = 512


def sums(
    kernel: Any, stretches: int, prediction: Array, target: Array, settings: Array
) -> NDArray[np.float64]:
    """Return the sums over equal stretches of two arrays' numbers, (stretches,).

    ``kernel(prediction, target, settings, length, sums, which, start, stop)`` is a numba function.
    Both arrays have one shape; they and the vector of settings have one dtype.
    """
    length = prediction.size // stretches
    blocks = -(-length // BLOCK)
    totals = np.empty(stretches * blocks)
    least = grain.least(grain.SUM, min(length, BLOCK))
    pair = flat(prediction), flat(target)
    over_range(kernel, totals.size, least, *pair, settings, length, totals)
    return totals if blocks == 1 else np.add.reduce(totals.reshape(stretches, blocks), axis=1)


@jit
def block(item, length):
    """Return begin and end of a block; none reaches beyond its stretch."""
    blocks = (length + BLOCK - 1) // BLOCK
    stretch, block = item // blocks, item % blocks
    first = stretch * length + block * BLOCK
    return first, min(first + BLOCK, (stretch + 1) * length)


@fastjit
def huber(x, t, settings, length, sums, which, start, stop):
    """Half the square up to delta, from there a line; the square itself if delta is infinite."""
    delta, half = settings[0], x.dtype.type(0.5)
    for item in range(start, stop):
        first, last = block(item, length)
        total = 0.0
        if delta == np.inf:
            for k in range(first, last):
                d = x[np.uintp(k)] - t[np.uintp(k)]
                total += np.float64(d * d)
        else:
            for k in range(first, last):
                d = x[np.uintp(k)] - t[np.uintp(k)]
                limited = min(max(d, -delta), delta)
                total += np.float64((d - half * limited) * limited)
        sums[item] = total


@jit
def huber_back(x, t, dx, settings, past):
    """Write the deviation, limited to delta, times a factor; settings: delta, factor."""
    delta, factor = settings[0], settings[1]
    for k in range(x.size):
        put(dx, k, min(max(x[k] - t[k], -delta), delta) * factor, past)
    drain(past)


@jit
def _weights(t, first, last, thresholds, weights, results):
    """Write the weight of each target: ``weights[k]``, k the number of thresholds it reaches."""
    for k in range(last - first):
        results[k] = weights[0]
    for step in range(thresholds.size):
        threshold, weight = thresholds[step], weights[step + 1]
        for k in range(last - first):
            results[k] = weight if t[np.uintp(first + k)] >= threshold else results[k]


@fastjit
def balanced(x, t, settings, length, sums, which, start, stop):
    """Squared and absolute deviation, weighted by the target; 0 where the target is NaN.

    Settings: factors of the two, then n + 1 weights, then n thresholds.
    """
    squared, absolute, steps = settings[0], settings[1], (settings.size - 3) // 2
    weights, thresholds = settings[2 : 3 + steps], settings[3 + steps :]
    weight_of, zero = np.empty(CHUNK, x.dtype), x.dtype.type(0)
    for item in range(start, stop):
        first, last = block(item, length)
        total = 0.0
        for low in range(first, last, CHUNK):
            high = min(low + CHUNK, last)
            _weights(t, low, high, thresholds, weights, weight_of)
            for k in range(high - low):
                goal = t[np.uintp(low + k)]
                d = zero if goal != goal else x[np.uintp(low + k)] - goal
                weighted = weight_of[k] * d
                total += np.float64(squared * (weighted * d) + absolute * abs(weighted))
        sums[item] = total


@jit
def balanced_back(x, t, dx, settings, past):
    """Write the slope of :func:`balanced`; the first settings are factors of deviation and sign."""
    squared, absolute, steps = settings[0], settings[1], (settings.size - 3) // 2
    weights, thresholds = settings[2 : 3 + steps], settings[3 + steps :]
    weight_of, zero = np.empty(CHUNK, x.dtype), x.dtype.type(0)
    for low in range(0, x.size, CHUNK):
        high = min(low + CHUNK, x.size)
        _weights(t, low, high, thresholds, weights, weight_of)
        for k in range(high - low):
            goal = t[np.uintp(low + k)]
            d = zero if goal != goal else x[np.uintp(low + k)] - goal
            up = absolute * weight_of[k]
            tilt = up if d > zero else (-up if d < zero else d * up)  # NaN stays NaN
            put(dx, low + k, squared * (weight_of[k] * d) + tilt, past)
    drain(past)


@fusedjit
def _costs(x, t, first, last, excess, results):
    """Write (1 - t) x + (1 + excess t) log(1 + exp(-x)) of the numbers ``first`` to ``last``."""
    one = x.dtype.type(1)
    for k in range(last - first):
        logit, yes = x[np.uintp(first + k)], t[np.uintp(first + k)]
        results[k] = (one - yes) * logit + (one + excess * yes) * softplus(-logit)


@fastjit
def cross_entropy(x, t, settings, length, sums, which, start, stop):
    """Cross entropy of targets from 0 to 1; setting: the weight of positive targets, less 1."""
    costs = np.empty(CHUNK, x.dtype)
    for item in range(start, stop):
        first, last = block(item, length)
        total = 0.0
        for low in range(first, last, CHUNK):
            high = min(low + CHUNK, last)
            _costs(x, t, low, high, settings[0], costs)
            for k in range(high - low):
                total += np.float64(costs[k])
        sums[item] = total


@fusedjit
def cross_entropy_back(x, t, dx, settings, past):
    """Write a factor times the slope of :func:`cross_entropy`; settings: its own and the factor."""
    excess, factor, one = settings[0], settings[1], x.dtype.type(1)
    for k in range(x.size):
        tilt = (one - t[k]) - (one + excess * t[k]) * logistic(-x[k])
        put(dx, k, factor * tilt, past)
    drain(past)


def multilabel_margin(prediction: Array, labels: Array) -> tuple[Array, Array]:
    """Return each row's sum of max(0, 1 - x[right] + x[wrong]), (N,), and its slopes, (N, C).

    Labels int64 (N, K) are the right classes, up to the first -1; all others are in range(C).
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
    """Add one right class; return the sum and the number of wrong classes within the margin."""
    total, count = x.dtype.type(0), x.dtype.type(0)
    above = x.dtype.type(1) - x[r, right]
    for c in range(x.shape[1]):
        short = above + x[r, c]
        # NaN counts as within, so that it shows.
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
