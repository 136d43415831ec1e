"""Balanced error of precipitation nowcasting: heavier where it rains harder."""

from __future__ import annotations

import numpy as np

from daskdl.ops.losses.reduction import Parts, loss, pair
from daskdl.tensor import Array


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
    """
    target = pair("precipitation", prediction, target)
    weight = np.asarray(weights, prediction.dtype)[np.searchsorted(thresholds, target, "right")]
    difference = np.where(np.isnan(target), prediction.dtype.type(0), prediction - target)
    weighted = weight * difference
    values = squared * (weighted * difference) + absolute * np.abs(weighted)

    def slope(s: Array) -> Array:
        return (2 * squared * s) * weighted + (absolute * s) * weight * np.sign(difference)

    return values, (slope, None)
