"""Binary cross entropy: of probabilities, and of logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import DataError, ShapeError
from daskdl.kernels.losses import regression as kernels
from daskdl.kernels.losses.regression import cross_entropy, cross_entropy_back
from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.vectors import functions
from daskdl.kernels.vectors.activations import sigmoid, softplus
from daskdl.ops.losses.reduction import Parts, Summed, loss, pair
from daskdl.tensor import Array

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits"]


@loss
def binary_cross_entropy(prediction: Array, target: Array, *, weight: Any = None) -> Parts:
    """-(t log(p) + (1 - t) log(1 - p)), each logarithm at least -100; no gradient to the target.

    Parameters
    ----------
    prediction : array (N, ...), from 0 to 1
    target : array of the same shape, from 0 to 1
    weight : array that broadcasts with them, optional
        Weight of each element, for instance (C,) for classes along the last axis.
    """
    target = pair("binary_cross_entropy", prediction, target)
    wrong = prediction[(prediction < 0) | (prediction > 1)]
    if wrong.size:
        raise DataError(
            f"binary_cross_entropy: expected predictions from 0 to 1, found {wrong.flat[0]}; for "
            "logits there is binary_cross_entropy_with_logits"
        )
    with np.errstate(divide="ignore"):
        yes = np.maximum(np.log(prediction), -100)
        no = np.maximum(functions.log1p(-prediction), -100)
    factor = _broadcast("weight", weight, prediction)
    values = -factor * (target * yes + (1 - target) * no)

    def slope(s: Array) -> Array:
        return s * factor * (prediction - target) / np.maximum(prediction * (1 - prediction), 1e-12)

    return values, (slope, None)


@loss
def binary_cross_entropy_with_logits(
    logits: Array, target: Array, *, weight: Any = None, pos_weight: Any = None
) -> Parts:
    """-(q t log(σ(x)) + (1 - t) log(1 - σ(x))), without overflow; no gradient to the target.

    Parameters
    ----------
    logits : array (N, ...)
    target : array of the same shape, from 0 to 1
    weight : array that broadcasts with them, optional
        Weight of each element, for instance (C,) for classes along the last axis.
    pos_weight : array that broadcasts with them, optional
        q, the weight of positive targets; above 1 it raises recall, below 1 precision.
    """
    target = pair("binary_cross_entropy_with_logits", logits, target)
    if weight is None and np.ndim(pos_weight) == 0:
        return _evenly(logits, target, 1.0 if pos_weight is None else float(pos_weight))
    factor = _broadcast("weight", weight, logits)
    # (1 - t) x + (1 + (q - 1) t) softplus(-x)
    both = 1 + (_broadcast("pos_weight", pos_weight, logits) - 1) * target
    values = factor * ((1 - target) * logits + both * one_pass(softplus, -logits)[0])

    def slope(s: Array) -> Array:
        return s * factor * ((1 - target) - both * one_pass(sigmoid, -logits)[0])

    return values, (slope, None)


def _evenly(logits: Array, target: Array, pos_weight: float) -> Parts:
    """Return the parts if all elements have the same weight, in one pass each way."""
    excess = pos_weight - 1

    def sums(stretches: int) -> Array:
        setting = np.array([excess], logits.dtype)
        return kernels.sums(cross_entropy, stretches, logits, target, setting)

    def slope(s: Array) -> Array:
        alike = not s.ndim  # all samples have the same factor
        setting = np.array([excess, s if alike else 1], logits.dtype)
        (gradient,) = one_pass(cross_entropy_back, logits, target, settings=setting)
        return gradient if alike else np.multiply(gradient, s, out=gradient)

    return Summed(logits.shape, sums), (slope, None)


def _broadcast(name: str, weight: Any, x: Array) -> Array:
    if weight is None:
        return np.ones((), x.dtype)
    weight = np.asarray(weight, x.dtype)
    try:
        fits = np.broadcast_shapes(weight.shape, x.shape) == x.shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"binary_cross_entropy: {name}: expected a shape that broadcasts with {x.shape}, "
            f"found {weight.shape}"
        )
    return weight
