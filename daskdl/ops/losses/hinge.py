"""Hinge losses of targets that are -1 or 1: plain, squared, soft, and of distances."""

from __future__ import annotations

import numpy as np

from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.vectors.activations import sigmoid, softplus
from daskdl.ops.losses.reduction import Parts, loss, signs
from daskdl.tensor import Array

__all__ = ["hinge", "hinge_embedding", "soft_margin"]


@loss
def hinge(prediction: Array, target: Array, *, margin: float = 1.0, squared: bool = False) -> Parts:
    """max(0, margin - t x), or its square; no gradient to the target.

    Parameters
    ----------
    prediction : array (N, ...)
    target : array of the same shape, of -1 and 1

    Raises
    ------
    DataError
        When a target is neither -1 nor 1.
    """
    target = signs("hinge", target, prediction.shape, prediction.dtype)
    short = np.maximum(margin - target * prediction, 0)
    if squared:
        return short * short, (lambda s: -2 * s * target * short, None)
    return short, (lambda s: -s * target * (short > 0), None)


@loss
def soft_margin(prediction: Array, target: Array) -> Parts:
    """log(1 + exp(-t x)), without overflow; no gradient to the target.

    Parameters
    ----------
    prediction : array (N, ...)
    target : array of the same shape, of -1 and 1

    Raises
    ------
    DataError
        When a target is neither -1 nor 1.
    """
    target = signs("soft_margin", target, prediction.shape, prediction.dtype)
    product = -target * prediction
    (values,) = one_pass(softplus, product)
    return values, (lambda s: -s * target * one_pass(sigmoid, product)[0], None)


@loss
def hinge_embedding(prediction: Array, target: Array, *, margin: float = 1.0) -> Parts:
    """X, a distance, where t is 1; max(0, margin - x) where it is -1; no gradient to the target.

    Parameters
    ----------
    prediction : array (N, ...)
    target : array of the same shape, of -1 and 1

    Raises
    ------
    DataError
        When a target is neither -1 nor 1.
    """
    target = signs("hinge_embedding", target, prediction.shape, prediction.dtype)
    short = margin - prediction
    values = np.where(target > 0, prediction, np.maximum(short, 0))
    return values, (lambda s: s * np.where(target > 0, 1, -(short > 0).astype(s.dtype)), None)
