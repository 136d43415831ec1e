"""Balanced error of precipitation nowcasting: heavier where it rains harder."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.kernels.losses import regression as kernels
from daskdl.kernels.runtime.passes import one_pass
from daskdl.ops.losses.reduction import Parts, Summed, loss, pair
from daskdl.tensor import Array

__all__ = ["precipitation"]


@loss
def precipitation(
    prediction: Array,
    target: Array,
    *,
    thresholds: Array,
    weights: Array,
    squared: float,
    absolute: float,
) -> Parts:
    """Squared and absolute error, weighted by how much rain there is; no gradient to the target.

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

    Examples
    --------
    >>> prediction, target = np.array([[1.0, 4.0]]), np.array([[0.0, 6.0]])
    >>> settings = {"thresholds": np.array([2.0]), "weights": np.array([1.0, 5.0])}
    >>> float(precipitation(prediction, target, **settings, squared=1.0, absolute=1.0))
    16.0
    """
    target = pair("precipitation", prediction, target)
    if len(weights) != len(thresholds) + 1 or (np.diff(thresholds) < 0).any():
        raise SettingsError(
            "precipitation: expected increasing thresholds and one more weight than thresholds, "
            f"found {thresholds} and {weights}"
            "; sort the thresholds, and give the weight below the first one, too"
        )
    steps = np.concatenate([weights, thresholds])

    def settings(squared: Any, absolute: Any) -> Array:
        return np.array([squared, absolute, *steps], prediction.dtype)

    def sums(stretches: int) -> Array:
        given = settings(squared, absolute)
        return kernels.sums(kernels.balanced, stretches, prediction, target, given)

    def slope(s: Array) -> Array:
        factor = s if not s.ndim else s.dtype.type(1)
        given = settings(2 * squared * factor, absolute * factor)
        (gradient,) = one_pass(kernels.balanced_back, prediction, target, settings=given)
        return gradient if not s.ndim else np.multiply(gradient, s, out=gradient)

    return Summed(prediction.shape, sums), (slope, None)
