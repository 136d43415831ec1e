"""Adagrad, RMSprop and Adadelta: one-pass update kernels."""

from __future__ import annotations

import numpy as np

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.passes import drain, renew


@jit
def adagrad(w, g, v, new_w, new_v, factors, past):
    """Step by Adagrad; factors: scale of the gradient, weight decay, rate, epsilon."""
    scale, decay, rate, epsilon = factors[0], factors[1], factors[2], factors[3]
    for k in range(w.size):
        d = scale * g[k] + decay * w[k]
        square = v[k] + d * d
        renew(v, new_v, k, square, past)
        renew(w, new_w, k, w[k] - rate * d / (np.sqrt(square) + epsilon), past)
    drain(past)


@jit
def rmsprop(w, g, s, m, v, new_w, new_s, new_m, new_v, factors, past):
    """Step by RMSprop; the mean ``m`` and the velocity ``v`` may each be None.

    Factors: scale of the gradient, weight decay, rate, decay of the square, 1 - decay, epsilon,
    momentum.
    """
    scale, decay, rate, keep = factors[0], factors[1], factors[2], factors[3]
    share, epsilon, momentum = factors[4], factors[5], factors[6]
    for k in range(w.size):
        d = scale * g[k] + decay * w[k]
        square = keep * s[k] + share * d * d
        renew(s, new_s, k, square, past)
        if m is not None:
            mean = keep * m[k] + share * d
            renew(m, new_m, k, mean, past)
            square -= mean * mean
            if square < 0:  # by rounding
                square = w.dtype.type(0)
        along = d / (np.sqrt(square) + epsilon)
        if v is not None:
            along += momentum * v[k]
            renew(v, new_v, k, along, past)
        renew(w, new_w, k, w[k] - rate * along, past)
    drain(past)


@jit
def adadelta(w, g, s, x, new_w, new_s, new_x, factors, past):
    """Step by Adadelta; factors: scale, weight decay, rate, decay of squares, 1 - it, epsilon."""
    scale, decay, rate = factors[0], factors[1], factors[2]
    keep, share, epsilon = factors[3], factors[4], factors[5]
    for k in range(w.size):
        d = scale * g[k] + decay * w[k]
        square = keep * s[k] + share * d * d
        along = np.sqrt(x[k] + epsilon) / np.sqrt(square + epsilon) * d
        renew(s, new_s, k, square, past)
        renew(x, new_x, k, keep * x[k] + share * along * along, past)
        renew(w, new_w, k, w[k] - rate * along, past)
    drain(past)
