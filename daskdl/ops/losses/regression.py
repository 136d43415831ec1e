"""Errors of predicted numbers: squared, absolute, Huber, relative and logarithmic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.kernels.losses import regression as kernels
from daskdl.kernels.runtime.passes import one_pass
from daskdl.ops.losses.reduction import Parts, Slope, Summed, loss, pair
from daskdl.tensor import Array

__all__ = [
    "absolute_error",
    "huber",
    "percentage_error",
    "smooth_l1",
    "squared_error",
    "squared_log_error",
]


def _both(difference: Array, slope: Any, values: Array) -> Parts:
    """Return the parts of a loss of ``prediction - target``."""
    return values, (lambda s: s * slope(difference), lambda s: -s * slope(difference))


def _huber(prediction: Array, target: Array, delta: float, scale: float) -> Parts:
    """Return the parts of a loss whose slope is ``scale`` times the deviation up to ``delta``."""
    settings = np.array([delta, scale], prediction.dtype)

    def sums(stretches: int) -> Array:
        total = kernels.sums(kernels.huber, stretches, prediction, target, settings)
        return total if math.isinf(delta) else scale * total

    def towards(sign: int) -> Slope:
        def slope(s: Array) -> Array:
            alike = not s.ndim  # all samples have the same factor
            factor = settings[1] * sign * s if alike else settings[1] * sign
            factors = np.array([delta, factor], prediction.dtype)
            (gradient,) = one_pass(kernels.huber_back, prediction, target, settings=factors)
            return gradient if alike else np.multiply(gradient, s, out=gradient)

        return slope

    return Summed(prediction.shape, sums), (towards(1), towards(-1))


@loss
def squared_error(prediction: Array, target: Array) -> Parts:
    """(prediction - target)²; two arrays of one shape, (N, ...).

    Examples
    --------
    >>> float(ops.squared_error(np.array([[1.0, 2.0]]), np.array([[1.5, 1.0]])).data)
    0.625
    """
    return _huber(prediction, pair("squared_error", prediction, target), math.inf, 2.0)


@loss
def absolute_error(prediction: Array, target: Array) -> Parts:
    """abs(prediction - target); two arrays of one shape, (N, ...). The slope at 0 is 0."""
    difference = prediction - pair("absolute_error", prediction, target)
    return _both(difference, np.sign, np.abs(difference))


@loss
def huber(prediction: Array, target: Array, *, delta: float = 1.0) -> Parts:
    """Half the squared error up to ``delta`` > 0, then a straight line with the same slope.

    P. J. Huber, Robust Estimation of a Location Parameter, Ann. Math. Statist. 35 (1964).
    """
    if not delta > 0:
        raise SettingsError(f"huber: expected delta > 0, found {delta}")
    return _huber(prediction, pair("huber", prediction, target), delta, 1.0)


@loss
def smooth_l1(prediction: Array, target: Array, *, beta: float = 1.0) -> Parts:
    """Absolute error with its corner rounded within ``beta``: Huber's for delta = beta, over beta.

    R. Girshick, Fast R-CNN, arXiv 1504.08083.
    """
    if not beta >= 0:
        raise SettingsError(f"smooth_l1: expected beta >= 0, found {beta}")
    target = pair("smooth_l1", prediction, target)
    if beta:
        return _huber(prediction, target, beta, 1 / beta)
    difference = prediction - target
    return _both(difference, np.sign, np.abs(difference))


@loss
def percentage_error(prediction: Array, target: Array, *, eps: float = 1e-7) -> Parts:
    """100 abs(prediction - target) / max(abs(target), eps); no gradient to the target."""
    target = pair("percentage_error", prediction, target)
    size = np.maximum(np.abs(target), eps) / 100
    difference = prediction - target
    return np.abs(difference) / size, (lambda s: s * np.sign(difference) / size, None)


@loss
def squared_log_error(prediction: Array, target: Array) -> Parts:
    """(log(1 + prediction) - log(1 + target))², negative numbers count as 0.

    No gradient to the target.
    """
    target = pair("squared_log_error", prediction, target)
    positive = np.maximum(prediction, 0)
    difference = _log_ratio(positive, np.maximum(target, 0))

    def slope(s: Array) -> Array:
        result = difference * (2 * s)
        result /= 1 + positive
        result *= prediction > 0
        return result

    return difference * difference, (slope, None)


def _log_ratio(a: Array, b: Array) -> Array:
    """Return log((1 + a) / (1 + b)) of numbers that are not negative.

    It uses one numpy logarithm, which is vectorised, unlike numpy's log1p: if 1 + q rounds to u,
    log(1 + q) is log(u) q / (u - 1) to the last digits (W. Kahan).
    """
    gap = a - b
    q = np.abs(gap) / (1 + np.minimum(a, b))
    u = 1 + q
    with np.errstate(invalid="ignore"):
        log = np.where(u == 1, q, np.log(u) * np.where(np.isinf(q), 1, q / (u - 1)))
    return np.copysign(log, gap)
