"""One pass over memory for optim methods that keep moments of the gradient."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.jit import fastjit
from daskdl.kernels.threads import in_parallel

Vector = NDArray[np.float32]


def adam_step(
    weights: Vector,
    gradient: Vector,
    mean: Vector,
    square: Vector,
    factors: Vector,
    new_weights: Vector,
    new_mean: Vector,
    new_square: Vector,
) -> None:
    """Write the weights and moments after a step of Adam into the last three vectors.

    ``factors``: decay of the mean, one less it, decay of the square, one less it, step size and
    epsilon (the bias correction already in both), shrinkage of the weights, scale of the gradient.
    """
    arrays = (weights, gradient, mean, square, new_weights, new_mean, new_square)
    in_parallel(lambda i, j: _adam(*(a[i:j] for a in arrays), factors), len(weights), least=1 << 16)


@fastjit
def _adam(w, g, m, v, new_w, new_m, new_v, factors):  # type: ignore[no-untyped-def]
    b1, new1, b2, new2 = factors[0], factors[1], factors[2], factors[3]
    rate, epsilon, keep, scale = factors[4], factors[5], factors[6], factors[7]
    for k in range(w.size):
        d = scale * g[k]
        first = b1 * m[k] + new1 * d
        second = b2 * v[k] + new2 * d * d
        new_m[k], new_v[k] = first, second
        new_w[k] = keep * w[k] - rate * first / (np.sqrt(second) + epsilon)
