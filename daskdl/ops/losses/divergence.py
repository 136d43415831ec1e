"""Kullback-Leibler divergence between two distributions along the last axis."""

from __future__ import annotations

import numpy as np

from daskdl.errors import ShapeError
from daskdl.ops.losses.reduction import Parts, along_last, loss, pair
from daskdl.tensor import Array


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
        )
    p = np.exp(target) if log_target else target
    if log_target:
        terms = target - prediction
    else:  # p log(p) is 0 where p is 0, and NaN where p is no probability
        with np.errstate(invalid="ignore"):
            terms = np.log(np.where(p == 0, p.dtype.type(1), p)) - prediction
    terms *= p
    return terms.sum(-1), (lambda s: -along_last(s) * p, None)
