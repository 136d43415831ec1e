"""Weights of attention: the softmax of a tile of scores, with masks and dropout."""

from __future__ import annotations

import numpy as np

from daskdl.kernels.runtime.elementary import exponential
from daskdl.kernels.runtime.jit import fusedjit, jit
from daskdl.kernels.vectors.dropout import philox
from daskdl.kernels.vectors.reduce import row_largest, row_sum

#: Places in a kernel's plan, a vector of int64: numbers of heads, rows and columns; whether a query
#: sees no later key; whether there are a mask and dropout; the mask's steps; then four places for
#: each array, see :func:`place_of`.
INNER, QUERIES, KEYS, CHANNELS, VALUES, CAUSAL, MASKED, DROPPED, STEPS, ARRAYS = (
    0, 1, 2, 3, 4, 5, 6, 7, 8, 12,
)  # fmt: skip


@jit
def place_of(plan, array, head):
    """Return the address of a head's first row in an array, and the bytes from row to row."""
    at = ARRAYS + 4 * array
    outer, inner = head // plan[INNER], head % plan[INNER]
    return plan[at] + outer * plan[at + 1] + inner * plan[at + 2], plan[at + 3]


@jit
def seen(plan, query, first, width):
    """Return how many of ``width`` keys from ``first`` on a query may see without a mask."""
    return max(0, min(width, query + 1 - first)) if plan[CAUSAL] else width


@fusedjit
def hide(plan, mask, head, query, count, first, width, scores):
    """Set the scores of hidden keys, and those after the last key, to minus infinity."""
    none = scores.dtype.type(-np.inf)
    outer, inner, row, step = plan[STEPS], plan[STEPS + 1], plan[STEPS + 2], plan[STEPS + 3]
    start = head // plan[INNER] * outer + head % plan[INNER] * inner + first * step
    for r in range(count):
        if plan[MASKED]:
            begin = start + (query + r) * row
            if step == 1:
                for c in range(width):
                    shown = mask[np.uintp(begin + c)]
                    scores[r, c] = scores[r, c] if shown else none
            else:
                for c in range(width):
                    shown = mask[np.uintp(begin + c * step)]
                    scores[r, c] = scores[r, c] if shown else none
        for c in range(seen(plan, query + r, first, width), scores.shape[1]):
            scores[r, c] = none


@fusedjit
def exponentials(scores, count, scale, tops, sums, factors):
    """Replace ``count`` rows of scores, times ``scale`` > 0, by exponentials; update their sums.

    Exponents are scores less the row's largest so far. ``tops`` and ``sums`` are each row's largest
    score and sum of exponentials so far; ``factors`` are the factors that earlier exponentials now
    need.
    """
    zero, none = scores.dtype.type(0), scores.dtype.type(-np.inf)
    for r in range(count):
        before = tops[r]
        largest = row_largest(scores, r) * scale
        top = before if largest <= before else largest  # NaN stays
        tops[r] = top
        start = zero if top == none else top  # no key seen so far
        for c in range(scores.shape[1]):
            scores[r, c] = exponential(scores[r, c] * scale - start)
        factors[r] = exponential(before - start)
        sums[r] = sums[r] * factors[r] + row_sum(scores, r)


@fusedjit
def probabilities(scores, count, scale, stats, head, query):
    """Replace scores by probabilities, with the largest score and the sum from ``stats``."""
    for r in range(count):
        top, factor = stats[head, query + r, 0], stats[head, query + r, 1]
        for c in range(scores.shape[1]):
            scores[r, c] = exponential(scores[r, c] * scale - top) * factor


@fusedjit
def score_gradients(weights, gradients, count, inner, scale):
    """Turn gradients to weights into gradients to scores, in place."""
    for r in range(count):
        mean = inner[r]
        for c in range(weights.shape[1]):
            gradients[r, c] = weights[r, c] * (gradients[r, c] - mean) * scale


@jit
def drop(plan, keys, limit, scale, head, query, count, first, width, drawn, weights):
    """Set weights to zero or scale them, by draws that depend on head, query and tile."""
    draws = -(-plan[KEYS] // 4) + 1  # per row
    lanes = drawn.shape[1]
    line = drawn.reshape(drawn.size)
    zero = weights.dtype.type(0)
    for r in range(count):
        row = head * plan[QUERIES] + query + r
        philox(row * draws + first // 4, keys, drawn)
        for c in range(width):
            word = line[np.uintp(c % 4 * lanes + c // 4)]
            weights[r, c] *= zero if word < limit else scale
