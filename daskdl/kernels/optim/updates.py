"""One-pass update kernels of all optimisers."""

from __future__ import annotations

import numpy as np

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.passes import drain, renew


@jit
def sgd(w, g, new_w, factors, past):
    """Step against the gradient; factors: scale of the gradient, weight decay, rate."""
    scale, decay, rate = factors[0], factors[1], factors[2]
    for k in range(w.size):
        renew(w, new_w, k, w[k] - rate * (scale * g[k] + decay * w[k]), past)
    drain(past)


@jit
def momentum(w, g, v, new_w, new_v, factors, past):
    """Step along a velocity.

    Factors: scale of the gradient, weight decay, rate, momentum, share of the gradient in the
    velocity, and whether it is Nesterov's, 1 or 0.
    """
    scale, decay, rate = factors[0], factors[1], factors[2]
    keep, share, nesterov = factors[3], factors[4], factors[5] > 0
    for k in range(w.size):
        d = scale * g[k] + decay * w[k]
        velocity = keep * v[k] + share * d
        renew(v, new_v, k, velocity, past)
        along = d + keep * velocity if nesterov else velocity
        renew(w, new_w, k, w[k] - rate * along, past)
    drain(past)


@jit
def ftrl(w, g, z, n, new_w, new_z, new_n, factors, past):
    """Step by FTRL-Proximal; factors: scale, weight decay, 1 / rate, beta, l1, l2."""
    scale, decay, slowness = factors[0], factors[1], factors[2]
    beta, l1, l2 = factors[3], factors[4], factors[5]
    for k in range(w.size):
        d = scale * g[k] + decay * w[k]
        total = n[k] + d * d
        root = np.sqrt(total)
        tilt = z[k] + d - slowness * (root - np.sqrt(n[k])) * w[k]
        renew(z, new_z, k, tilt, past)
        renew(n, new_n, k, total, past)
        rest = tilt - l1 if tilt > 0 else tilt + l1
        steep = slowness * (beta + root) + l2
        # 0 also if both tilt and l1 are 0; NaN stays NaN.
        renew(w, new_w, k, w.dtype.type(0) if abs(tilt) <= l1 else -rest / steep, past)
    drain(past)


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
