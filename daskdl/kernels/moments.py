"""One pass over memory for each optim method: new weights and state from the old and a gradient.

What limits them is memory. Adam reads four vectors and writes three; the new ones are written past
the caches (:mod:`daskdl.kernels.stores`), so that nothing is read that is not needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.jit import fastjit
from daskdl.kernels.passes import one_pass
from daskdl.kernels.stores import drain, put

Vector = NDArray[np.float32]


def adam_step(
    weights: Vector, gradient: Vector, mean: Vector, square: Vector, factors: Vector
) -> list[Vector]:
    """Return the weights and both moments after a step of Adam.

    ``factors``: decay of the mean, one less it, decay of the square, one less it, step size and
    epsilon (the bias correction already in both), shrinkage of the weights, scale of the gradient.
    """
    return one_pass(_adam, weights, gradient, mean, square, settings=factors, results=3)


def sgd_step(weights: Vector, gradient: Vector, factors: Vector) -> Vector:
    """Return the weights after a step against the gradient; ``factors``: rate, weight decay."""
    (new,) = one_pass(_sgd, weights, gradient, settings=factors)
    return new


def momentum_step(
    weights: Vector, gradient: Vector, velocity: Vector, factors: Vector
) -> list[Vector]:
    """Return the weights and the velocity after a step with momentum.

    ``factors``: rate, weight decay, momentum, and whether it is Nesterov's, 1 or 0.
    """
    return one_pass(_momentum, weights, gradient, velocity, settings=factors, results=2)


def adagrad_step(
    weights: Vector, gradient: Vector, square: Vector, factors: Vector
) -> list[Vector]:
    """Return the weights and the sums of squares after a step of Adagrad.

    ``factors``: rate, weight decay, epsilon.
    """
    return one_pass(_adagrad, weights, gradient, square, settings=factors, results=2)


@fastjit
def _adam(w, g, m, v, new_w, new_m, new_v, factors, past):  # type: ignore[no-untyped-def]
    b1, new1, b2, new2 = factors[0], factors[1], factors[2], factors[3]
    rate, epsilon, keep, scale = factors[4], factors[5], factors[6], factors[7]
    for k in range(w.size):
        d = scale * g[k]
        first = b1 * m[k] + new1 * d
        second = b2 * v[k] + new2 * d * d
        put(new_m, k, first, past)
        put(new_v, k, second, past)
        put(new_w, k, keep * w[k] - rate * first / (np.sqrt(second) + epsilon), past)
    drain(past)


@fastjit
def _sgd(w, g, new_w, factors, past):  # type: ignore[no-untyped-def]
    rate, decay = factors[0], factors[1]
    for k in range(w.size):
        put(new_w, k, w[k] - rate * (g[k] + decay * w[k]), past)
    drain(past)


@fastjit
def _momentum(w, g, v, new_w, new_v, factors, past):  # type: ignore[no-untyped-def]
    rate, decay, momentum, nesterov = factors[0], factors[1], factors[2], factors[3] > 0
    for k in range(w.size):
        d = g[k] + decay * w[k]
        velocity = momentum * v[k] + d
        put(new_v, k, velocity, past)
        step = d + momentum * velocity if nesterov else velocity
        put(new_w, k, w[k] - rate * step, past)
    drain(past)


@fastjit
def _adagrad(w, g, v, new_w, new_v, factors, past):  # type: ignore[no-untyped-def]
    rate, decay, epsilon = factors[0], factors[1], factors[2]
    for k in range(w.size):
        d = g[k] + decay * w[k]
        square = v[k] + d * d
        put(new_v, k, square, past)
        put(new_w, k, w[k] - rate * d / (np.sqrt(square) + epsilon), past)
    drain(past)
