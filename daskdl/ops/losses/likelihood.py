"""Negative logarithms of likelihoods: counts after Poisson, numbers after Gauss."""

from __future__ import annotations

import math

import numpy as np

from daskdl.ops.losses.reduction import Parts, loss, pair
from daskdl.tensor import Array

__all__ = ["gaussian_nll", "poisson_nll"]


@loss
def poisson_nll(
    prediction: Array, target: Array, *, log: bool = True, full: bool = False, eps: float = 1e-8
) -> Parts:
    """Rate - target * log(rate), for counts; no gradient to the target.

    Parameters
    ----------
    prediction, target : arrays of one shape, (N, ...)
    log : bool
        Whether the prediction is the logarithm of the rate.
    full : bool
        Whether to add Stirling's approximation of log(target!), where the target is more than 1.
    eps : float
        Added to a rate before its logarithm is taken.
    """
    target = pair("poisson_nll", prediction, target)
    rate = np.exp(prediction) if log else prediction
    values = rate - target * (prediction if log else np.log(prediction + eps))
    if full:
        many = np.maximum(target, 1)
        stirling = many * np.log(many) - many + 0.5 * np.log(2 * math.pi * many)
        values += np.where(target > 1, stirling, 0)

    def slope(s: Array) -> Array:
        return s * (rate - target) if log else s * (1 - target / (prediction + eps))

    return values, (slope, None)


@loss
def gaussian_nll(mean: Array, variance: Array, target: Array, *, eps: float = 1e-6) -> Parts:
    """Half of log(variance) + (target - mean)² / variance; no gradient to the target.

    D. A. Nix and A. S. Weigend, Estimating the mean and variance of the target probability
    distribution, ICNN 1994.

    Parameters
    ----------
    mean, variance, target : arrays of one shape, (N, ...)
    eps : float
        A variance below it is taken for it.
    """
    variance = np.maximum(pair("gaussian_nll", mean, variance), eps)
    difference = mean - pair("gaussian_nll", mean, target)
    values = 0.5 * (np.log(variance) + difference * difference / variance)

    def to_variance(s: Array) -> Array:
        return s * (0.5 / variance - 0.5 * np.square(difference / variance))

    return values, (lambda s: s * difference / variance, to_variance, None)
