"""Losses: a scalar that is the mean over the samples of a batch."""

from __future__ import annotations

import numpy as np

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
    """Mean of -log softmax(logits)[label].  logits (..., classes), labels (...) integers from 0."""
    shifted = logits - logits.max(-1, keepdims=True)
    exponentials = np.exp(shifted)
    sums = exponentials.sum(-1, keepdims=True)
    chosen = np.take_along_axis(shifted, labels[..., None], -1)
    value = np.mean(np.log(sums) - chosen, dtype=np.float64)

    def backward(dy: Array):  # type: ignore[no-untyped-def]
        gradient = exponentials / sums
        here = np.take_along_axis(gradient, labels[..., None], -1) - 1
        np.put_along_axis(gradient, labels[..., None], here, -1)
        gradient *= logits.dtype.type(dy / labels.size)
        return gradient, None

    return np.asarray(value, logits.dtype), backward
