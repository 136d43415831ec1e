"""Connectionist temporal classification: the likelihood of labels whose times are unknown.

A. Graves et al., Connectionist Temporal Classification: Labelling Unsegmented Sequence Data with
Recurrent Neural Networks, ICML 2006. A row's states are its labels with a blank before, between and
after them; sums over all paths through them are computed as logarithms, in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.elementary import exponential
from daskdl.kernels.runtime.jit import fusedjit, jit
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[Any]


def forward(
    log_probabilities: Array, labels: Array, label_lengths: Array, lengths: Array, blank: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return -log of each sample's likelihood, and the paths' sums from the left (N, T, 2 S + 1).

    Log probabilities are (N, T, C), labels (N, S). Both lengths (N,) say how many labels and steps
    of a sample count. The loss is infinity if there is no path.
    """
    n, steps, _ = log_probabilities.shape
    labels = np.require(labels, requirements="W")  # kernels are compiled for one kind
    losses, left = np.empty(n), np.full((n, steps, 2 * labels.shape[1] + 1), -np.inf)

    rows = log_probabilities, labels, label_lengths, lengths, left, losses
    over_rows(_left, rows, _least(left), blank)
    return losses, left


def gradient(
    log_probabilities: Array,
    labels: Array,
    label_lengths: Array,
    lengths: Array,
    blank: int,
    forwards: tuple[NDArray[np.float64], NDArray[np.float64]],
    factors: NDArray[np.float64],
) -> Array:
    """Return the gradient of ``sum(factors * losses)`` to the logits, (N, T, C).

    The probabilities have to be the logits' softmax. A sample whose factor is 0 gets zeros.
    """
    losses, left = forwards
    labels = np.require(labels, requirements="W")
    result = np.zeros_like(log_probabilities)

    rows = log_probabilities, labels, label_lengths, lengths, left, losses, factors, result
    over_rows(_back, rows, _least(left), blank)
    return result


def _least(left: NDArray[np.float64]) -> int:
    return grain.least(grain.LOG_ADDITION, left[0].size if len(left) else 1)


# Taylor's series of exp(r), |r| <= log(2) / 2, and of atanh(y) / y in powers of y^2, y <= 1 / 5:
# both to the last bits of float64. libm's do not vectorise, and would take most of the time.
_EXP = tuple(1 / math.factorial(k) for k in range(14))
_ATANH = tuple(1 / (2 * k + 1) for k in range(12))
_LOG_TWO = math.log(2)
#: Adding 1.5 * 2^52 rounds to a whole number in the lowest bits.
_SHIFT = 1.5 * 2.0**52
#: log(2) in two parts: a whole number times the first is exact.
_HIGH, _LOW = 0.693145751953125, 1.42860682030941723212e-6
_BIAS = int(np.float64(_SHIFT).view(np.int64)) - 1023


# Compiled once for all callers, and inlined so that the loops around them vectorise.
_part: Any = numba.njit(fastmath={"contract"}, error_model="numpy", forceinline=True)


@_part
def _exp(x):
    """Return exp(x) for x <= 0, at least exp(-700)."""
    shifted = max(x, -700.0) * (1 / _LOG_TWO) + _SHIFT
    n = shifted - _SHIFT
    r = (max(x, -700.0) - n * _HIGH) - n * _LOW
    z = r * r
    low = _EXP[0] + r + z * (_EXP[2] + r * _EXP[3] + z * (_EXP[4] + r * _EXP[5]))
    high = _EXP[6] + r * _EXP[7] + z * (_EXP[8] + r * _EXP[9])
    top = _EXP[10] + r * _EXP[11] + z * (_EXP[12] + r * _EXP[13])
    power = (np.float64(shifted).view(np.int64) - _BIAS) << np.int64(52)
    return (low + z * z * z * (high + z * z * top)) * np.int64(power).view(np.float64)


@_part
def _log_add(a, b, c):
    """Return log(exp(a) + exp(b) + exp(c))."""
    high = max(a, max(b, c))
    base = max(high, -1e300)  # finite even if all three are -infinity
    total = _exp(a - base) + _exp(b - base) + _exp(c - base)  # 1 to 3
    twice = np.float64(total > 1.5)
    y = (total - (1 + twice)) / (total + (1 + twice))
    z = y * y
    far = _ATANH[8] + z * (_ATANH[9] + z * (_ATANH[10] + z * _ATANH[11]))
    mid = _ATANH[4] + z * (_ATANH[5] + z * (_ATANH[6] + z * _ATANH[7]))
    low = _ATANH[0] + z * (_ATANH[1] + z * (_ATANH[2] + z * _ATANH[3]))
    w = z * z * z * z
    return high + (2 * y * (low + w * (mid + w * far)) + twice * _LOG_TWO)


@jit
def _states(labels, count, blank):
    """Return the class of each of a row's states, and 0 or -infinity for a step over a blank to it.

    Every other state is a label; no step leads over the blank between two equal labels.
    """
    states = 2 * count + 1
    classes, over = np.full(states, blank), np.full(states + 2, -np.inf)
    for k in range(count):
        classes[2 * k + 1] = labels[k]
        if k > 0 and labels[k] != labels[k - 1]:
            over[2 * k + 1] = 0.0
    return classes, over


@fusedjit
def _left(x, labels, label_lengths, lengths, left, losses, blank):
    for i in range(x.shape[0]):
        paths, steps = left[i], lengths[i]
        classes, over = _states(labels[i], label_lengths[i], blank)
        states = classes.size
        if steps == 0:
            losses[i] = 0.0 if states == 1 else np.inf
            continue
        before, here = np.full(states + 2, -np.inf), np.empty(states)
        for s in range(min(2, states)):
            paths[0, s] = before[2 + s] = x[i, 0, classes[s]]
        for t in range(1, steps):
            now = paths[t]
            for s in range(states):
                here[s] = x[i, t, classes[s]]
            for s in range(states):
                now[s] = _log_add(before[s + 2], before[s + 1], before[s] + over[s]) + here[s]
            for s in range(states):
                before[s + 2] = now[s]
        losses[i] = -_log_add(before[states + 1], before[states], -np.inf)


@fusedjit
def _back(x, labels, label_lengths, lengths, left, losses, factors, result, blank):
    for i in range(x.shape[0]):
        factor = factors[i]
        if factor == 0:
            continue
        steps = lengths[i]
        classes, over = _states(labels[i], label_lengths[i], blank)
        states = classes.size
        # Sums over the paths after a state, without and with its own share.
        right, after = np.full(states, -np.inf), np.full(states + 2, -np.inf)
        shares = np.empty(states)
        right[states - 1] = 0.0
        if states > 1:
            right[states - 2] = 0.0
        for t in range(steps - 1, -1, -1):
            now, row, gradient = left[i, t], x[i, t], result[i, t]
            for c in range(x.shape[2]):
                gradient[c] = factor * exponential(row[c])
            for s in range(states):
                shares[s] = factor * _exp(now[s] + right[s] + losses[i])
            for s in range(states):
                gradient[classes[s]] -= shares[s]
                after[s] = right[s] + row[classes[s]]
            for s in range(states):
                right[s] = _log_add(after[s], after[s + 1], after[s + 2] + over[s + 2])
