"""Errors of predicted numbers: squared, absolute, Huber's, relative and of logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.ops.losses.reduction import Parts, loss, pair
from daskdl.tensor import Array


def _both(difference: Array, slope: Any, values: Array) -> Parts:
    """Return the parts of a loss of ``prediction - target``."""
    return values, (lambda s: s * slope(difference), lambda s: -s * slope(difference))


@loss
def squared_error(prediction: Array, target: Array) -> Parts:
    """(prediction - target)²; two arrays of one shape, (N, ...)."""
    difference = prediction - pair("squared_error", prediction, target)
    return difference * difference, (
        lambda s: difference * (2 * s),
        lambda s: difference * (-2 * s),
    )


@loss
def absolute_error(prediction: Array, target: Array) -> Parts:
    """abs(prediction - target); two arrays of one shape, (N, ...). The slope at 0 is 0."""
    difference = prediction - pair("absolute_error", prediction, target)
    return _both(difference, np.sign, np.abs(difference))


@loss
def huber(prediction: Array, target: Array, *, delta: float = 1.0) -> Parts:
    """Half the squared error up to ``delta``, from there a straight line with its slope.

    P. J. Huber, Robust Estimation of a Location Parameter, Ann. Math. Statist. 35 (1964).

    Raises
    ------
    SettingsError
        When ``delta`` is not positive.
    """
    if not delta > 0:
        raise SettingsError(f"huber: expected delta > 0, found {delta}")
    difference = prediction - pair("huber", prediction, target)
    clipped = np.clip(difference, -delta, delta)
    return _rounded(difference, clipped), (lambda s: s * clipped, lambda s: -s * clipped)


@loss
def smooth_l1(prediction: Array, target: Array, *, beta: float = 1.0) -> Parts:
    """Absolute error whose corner is rounded within ``beta``: Huber's with delta = beta, over beta.

    R. Girshick, Fast R-CNN, arXiv 1504.08083.

    Raises
    ------
    SettingsError
        When ``beta`` is negative.
    """
    if not beta >= 0:
        raise SettingsError(f"smooth_l1: expected beta >= 0, found {beta}")
    difference = prediction - pair("smooth_l1", prediction, target)
    if not beta:
        return _both(difference, np.sign, np.abs(difference))
    clipped = np.clip(difference, -beta, beta)
    values = _rounded(difference, clipped)
    values /= beta
    return values, (lambda s: clipped * (s / beta), lambda s: clipped * (s / -beta))


def _rounded(difference: Array, clipped: Array) -> Array:
    """Return half the square of the difference, and beyond the clipped a straight line."""
    values = clipped / 2
    np.subtract(difference, values, out=values)
    values *= clipped
    return values


@loss
def percentage_error(prediction: Array, target: Array, *, eps: float = 1e-7) -> Parts:
    """100 abs(prediction - target) / max(abs(target), eps); no gradient to the target."""
    target = pair("percentage_error", prediction, target)
    size = np.maximum(np.abs(target), eps) / 100
    difference = prediction - target
    return np.abs(difference) / size, (lambda s: s * np.sign(difference) / size, None)


@loss
def squared_log_error(prediction: Array, target: Array) -> Parts:
    """(log(1 + prediction) - log(1 + target))², negative numbers taken for 0.

    No gradient to the target.
    """
    target = pair("squared_log_error", prediction, target)
    positive = np.maximum(prediction, 0)
    difference = np.log1p(positive) - np.log1p(np.maximum(target, 0))

    def slope(s: Array) -> Array:
        return np.where(prediction > 0, 2 * s * difference / (1 + positive), 0)

    return difference * difference, (slope, None)
