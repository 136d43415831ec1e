"""Connectionist temporal classification: the likelihood of labels whose times are not known.

A. Graves et al., Connectionist Temporal Classification: Labelling Unsegmented Sequence Data with
Recurrent Neural Networks, ICML 2006. A row's states are its labels with a blank before, between and
after them; sums over all paths through them are taken as logarithms, in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[Any]


def forward(
    log_probabilities: Array, labels: Array, label_lengths: Array, lengths: Array, blank: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return -log of each sample's likelihood, and the paths' sums from the left.

    Parameters
    ----------
    log_probabilities : array (N, T, C)
    labels : int64 array (N, S)
    label_lengths, lengths : int64 arrays (N,)
        How many labels, and how many of T steps, count.
    blank : int
        The class that stands for no label.

    Returns
    -------
    losses : float64 array (N,), infinity where there is no path
    left : float64 array (N, T, 2 S + 1)
    """
    n, steps, _ = log_probabilities.shape
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

    The probabilities are taken for the softmax of these. A sample whose factor is 0 gets zeros.
    """
    losses, left = forwards
    result = np.zeros_like(log_probabilities)

    rows = log_probabilities, labels, label_lengths, lengths, left, losses, factors, result
    over_rows(_back, rows, _least(left), blank)
    return result


def _least(left: NDArray[np.float64]) -> int:
    return grain.least(grain.LOG_ADDITION, left[0].size if len(left) else 1)


@jit
def _log_add(a, b):
    high, low = (a, b) if a > b else (b, a)
    return high if high == -np.inf else high + np.log1p(np.exp(low - high))


@jit
def _class(labels, state, blank):
    """Return the class of a state: every other is a label."""
    return labels[state // 2] if state % 2 else blank


@jit
def _skips(labels, state):
    """Return whether a state may follow the one before the blank before it."""
    return state % 2 == 1 and state > 1 and labels[state // 2] != labels[state // 2 - 1]


@jit
def _left(x, labels, label_lengths, lengths, left, losses, blank):
    for i in range(x.shape[0]):
        row, paths, states, steps = labels[i], left[i], 2 * label_lengths[i] + 1, lengths[i]
        if steps == 0:
            losses[i] = 0.0 if states == 1 else np.inf
            continue
        paths[0, 0] = x[i, 0, blank]
        if states > 1:
            paths[0, 1] = x[i, 0, row[0]]
        for t in range(1, steps):
            for s in range(states):
                total = paths[t - 1, s]
                if s > 0:
                    total = _log_add(total, paths[t - 1, s - 1])
                if _skips(row, s):
                    total = _log_add(total, paths[t - 1, s - 2])
                paths[t, s] = total + x[i, t, _class(row, s, blank)]
        end = paths[steps - 1, states - 1]
        if states > 1:
            end = _log_add(end, paths[steps - 1, states - 2])
        losses[i] = -end


@jit
def _back(x, labels, label_lengths, lengths, left, losses, factors, result, blank):
    for i in range(x.shape[0]):
        factor = factors[i]
        if factor == 0:
            continue
        row, states, steps = labels[i], 2 * label_lengths[i] + 1, lengths[i]
        right, after = np.full(states, -np.inf), np.empty(states)  # of what follows a state
        right[states - 1] = 0.0
        if states > 1:
            right[states - 2] = 0.0
        for t in range(steps - 1, -1, -1):
            for c in range(x.shape[2]):
                result[i, t, c] = factor * np.exp(x[i, t, c])
            for s in range(states):
                share = np.exp(left[i, t, s] + right[s] + losses[i])
                result[i, t, _class(row, s, blank)] -= factor * share
            for s in range(states):
                after[s] = right[s] + x[i, t, _class(row, s, blank)]
            for s in range(states):
                total = after[s]
                if s + 1 < states:
                    total = _log_add(total, after[s + 1])
                if s + 2 < states and _skips(row, s + 2):
                    total = _log_add(total, after[s + 2])
                right[s] = total
