"""Adam, AdamW, Nadam, AMSGrad and Adamax: one-pass update kernels."""

from __future__ import annotations

import numpy as np

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.passes import drain, renew


@jit
def adam(w, g, m, v, new_w, new_m, new_v, factors, past):
    """Step by Adam, AdamW or Nadam.

    Factors: scale of the gradient, weight decay in the gradient, decay b1 of the mean, 1 - b1,
    decay b2 of the square, 1 - b2, rate and epsilon (both with the bias corrections), factor of the
    weights, and rate of the gradient itself.
    """
    scale, decay, keep, direct = factors[0], factors[1], factors[8], factors[9]
    b1, new1, b2, new2 = factors[2], factors[3], factors[4], factors[5]
    rate, epsilon = factors[6], factors[7]
    for k in range(w.size):
        d = scale * g[k] + decay * w[k]
        first = b1 * m[k] + new1 * d
        second = b2 * v[k] + new2 * d * d
        renew(m, new_m, k, first, past)
        renew(v, new_v, k, second, past)
        along = (rate * first + direct * d) / (np.sqrt(second) + epsilon)
        renew(w, new_w, k, keep * w[k] - along, past)
    drain(past)


@jit
def amsgrad(w, g, m, v, x, new_w, new_m, new_v, new_x, factors, past):
    """Step by Adam with the largest square so far, ``x``; factors are Adam's without the last."""
    scale, decay, keep = factors[0], factors[1], factors[8]
    b1, new1, b2, new2 = factors[2], factors[3], factors[4], factors[5]
    rate, epsilon = factors[6], factors[7]
    for k in range(w.size):
        d = scale * g[k] + decay * w[k]
        first = b1 * m[k] + new1 * d
        second = b2 * v[k] + new2 * d * d
        largest = x[k] if x[k] > second else second
        renew(m, new_m, k, first, past)
        renew(v, new_v, k, second, past)
        renew(x, new_x, k, largest, past)
        renew(w, new_w, k, keep * w[k] - rate * first / (np.sqrt(largest) + epsilon), past)
    drain(past)


@jit
def adamax(w, g, m, u, new_w, new_m, new_u, factors, past):
    """Step by Adamax.

    Factors: scale of the gradient, weight decay, decay b1 of the mean, 1 - b1, decay of the
    maximum, rate, epsilon.
    """
    scale, decay, b1, new1 = factors[0], factors[1], factors[2], factors[3]
    b2, rate, epsilon = factors[4], factors[5], factors[6]
    for k in range(w.size):
        d = scale * g[k] + decay * w[k]
        first = b1 * m[k] + new1 * d
        before, now = b2 * u[k], abs(d) + epsilon
        largest = before if before > now else now
        renew(m, new_m, k, first, past)
        renew(u, new_u, k, largest, past)
        renew(w, new_w, k, w[k] - rate * first / largest, past)
    drain(past)
