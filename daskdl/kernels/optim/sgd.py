"""SGD, SGD with momentum, and FTRL-Proximal: one-pass update kernels."""

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
