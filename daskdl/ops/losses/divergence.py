"""Kullback-Leibler divergences of distributions along the last axis, and of normal ones."""

from __future__ import annotations

import numpy as np

from daskdl.errors import ShapeError
from daskdl.kernels.vectors import functions
from daskdl.ops.losses.reduction import Parts, along_last, loss, pair
from daskdl.tensor import Array

__all__ = ["gaussian_kl", "kl_divergence"]


@loss
def kl_divergence(prediction: Array, target: Array, *, log_target: bool = False) -> Parts:
    """Sum of p (log(p) - log(q)) along the last axis; no gradient to the target.

    S. Kullback and R. A. Leibler, On Information and Sufficiency, Ann. Math. Statist. 22 (1951).

    Parameters
    ----------
    prediction : array (N, ..., C)
        log(q), as log_softmax gives it.
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
    else:  # p log(p) is 0 where p is 0, and NaN where p is no probability
        with np.errstate(invalid="ignore"):
            terms = np.log(np.where(p == 0, p.dtype.type(1), p)) - prediction
    terms *= p
    return terms.sum(-1), (lambda s: -along_last(s) * p, None)


@loss
def gaussian_kl(mean: Array, log_variance: Array) -> Parts:
    """Divergence of normal distributions from the standard one, summed along the last axis.

    ``sum(mean**2 + variance - 1 - log_variance) / 2``, what keeps the code of a variational
    autoencoder together (D. P. Kingma and M. Welling, arXiv 1312.6114, appendix B).

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
