"""Losses: a scalar that is the mean over the samples of a batch."""

from __future__ import annotations

import numpy as np

from daskdl.errors import ShapeError
from daskdl.kernels import softmax
from daskdl.ops.activations import check_float
from daskdl.tensor import Array, op


@op
def squared_error(prediction: Array, target: Array):  # type: ignore[no-untyped-def]
    """Mean squared difference of two arrays of one shape."""
    difference = prediction - target
    value = np.mean(np.square(difference, dtype=np.float64))
    factor = prediction.dtype.type(2 / difference.size)

    def backward(dy: Array):  # type: ignore[no-untyped-def]
        return (lambda: difference * (factor * dy), lambda: difference * (-factor * dy))

    return np.asarray(value, prediction.dtype), backward


@op
def precipitation(  # type: ignore[no-untyped-def]
    prediction: Array,
    target: Array,
    *,
    thresholds: Array,
    weights: Array,
    squared: float,
    absolute: float,
):
    """Squared and absolute error, weighted by how much rain there is.

    A pixel's weight is ``weights[k]``, k the number of ``thresholds`` that its target reaches.
    Pixels whose target is NaN (missing) count nothing. Per sample the sum is divided by the number
    of its pixels, missing ones included, so that a sample with few valid pixels weighs less.

    X. Shi et al., Deep Learning for Precipitation Nowcasting: A Benchmark and A New Model,
    arXiv 1706.03458, section 3.2.

    Parameters
    ----------
    prediction, target : arrays of one shape, (N, ...)
    thresholds : array (K,), increasing, in the target's unit
    weights : array (K + 1,)
    squared, absolute : float
        Factors of the two errors.
    """
    missing = np.isnan(target)
    weight = np.asarray(weights, prediction.dtype)[np.searchsorted(thresholds, target, "right")]
    difference = np.where(missing, prediction.dtype.type(0), prediction - target)
    weighted = weight * difference
    total = squared * np.sum(weighted * difference, dtype=np.float64)
    total += absolute * np.sum(np.abs(weighted), dtype=np.float64)

    def backward(dy: Array):  # type: ignore[no-untyped-def]
        def to_prediction() -> Array:
            scale = prediction.dtype.type(dy / target.size)
            slope = (2 * squared * scale) * weighted
            slope += (absolute * scale) * weight * np.sign(difference)
            return slope

        return to_prediction, None

    return np.asarray(total / target.size, prediction.dtype), backward


@op
def cross_entropy(logits: Array, labels: Array):  # type: ignore[no-untyped-def]
    """Mean of -log softmax(logits)[label].  logits (..., classes), labels (...) integers from 0.

    Raises
    ------
    ShapeError
        When the labels are not integers of the logits' leading shape, or one is not a class.
    """
    check_float("cross_entropy", logits)
    labels = np.asarray(labels)
    if labels.shape != logits.shape[:-1] or labels.dtype.kind not in "iu":
        raise ShapeError(
            f"cross_entropy: expected integer labels of shape {logits.shape[:-1]}, found "
            f"{labels.dtype} {labels.shape}"
        )
    losses, scales = softmax.cross_entropy(logits, labels)
    value = losses.mean() if losses.size else np.nan

    def backward(dy: Array):  # type: ignore[no-untyped-def]
        def to_logits() -> Array:
            factor = float(dy) / labels.size
            return softmax.cross_entropy_gradient(logits, labels, scales, factor)

        return to_logits, None

    return np.asarray(value, logits.dtype), backward
