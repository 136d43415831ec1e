"""Losses of distributions: likelihoods and divergences."""

from __future__ import annotations

import math

import numpy as np

from daskdl.errors import ShapeError
from daskdl.kernels.vectors import functions
from daskdl.ops.losses.reduction import Parts, along_last, loss, pair
from daskdl.tensor import Array

__all__ = ["gaussian_kl", "gaussian_nll", "kl_divergence", "poisson_nll"]


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
        Whether to add Stirling's approximation of log(target!) where the target is above 1.
    eps : float
        Added to a rate before its logarithm.
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
        Least variance; smaller ones count as ``eps``.
    """
    variance = np.maximum(pair("gaussian_nll", mean, variance), eps)
    difference = mean - pair("gaussian_nll", mean, target)
    values = 0.5 * (np.log(variance) + difference * difference / variance)

    def to_variance(s: Array) -> Array:
        return s * (0.5 / variance - 0.5 * np.square(difference / variance))

    return values, (lambda s: s * difference / variance, to_variance, None)


@loss
def kl_divergence(prediction: Array, target: Array, *, log_target: bool = False) -> Parts:
    """Sum of p (log(p) - log(q)) along the last axis; no gradient to the target.

    S. Kullback and R. A. Leibler, On Information and Sufficiency, Ann. Math. Statist. 22 (1951).

    Parameters
    ----------
    prediction : array (N, ..., C)
        log(q), for instance from log_softmax.
    target : array of the same shape
        p, or log(p) with ``log_target``.
    """
    target = pair("kl_divergence", prediction, target)
    if prediction.ndim < 2:
        raise ShapeError(
            "kl_divergence: expected shape (N, ..., C), a distribution along the last axis, found "
            f"{prediction.shape}"
            "; give a row of probabilities for each sample"
        )
    p = np.exp(target) if log_target else target
    if log_target:
        terms = target - prediction
    else:  # p log(p) is 0 where p is 0, and NaN where p is negative
        with np.errstate(invalid="ignore"):
            terms = np.log(np.where(p == 0, p.dtype.type(1), p)) - prediction
    terms *= p
    return terms.sum(-1), (lambda s: -along_last(s) * p, None)


@loss
def gaussian_kl(mean: Array, log_variance: Array) -> Parts:
    """Divergence of normal distributions from the standard one, summed along the last axis.

    ``sum(mean**2 + variance - 1 - log_variance) / 2``, the regulariser of a variational
    autoencoder's code (D. P. Kingma and M. Welling, arXiv 1312.6114, appendix B).

    Parameters
    ----------
    mean, log_variance : arrays of one shape, (N, ..., D)
    """
    log_variance = pair("gaussian_kl", mean, log_variance)
    if mean.ndim < 2:
        raise ShapeError(f"gaussian_kl: expected arrays (N, ..., D), found {mean.shape}")
    more = functions.expm1(log_variance)  # the variance less 1
    values = (mean * mean + more - log_variance).sum(-1) / 2
    return values, (lambda s: along_last(s) * mean, lambda s: along_last(s) * more / 2)
