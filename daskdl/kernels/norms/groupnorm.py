"""Group normalisation of images: statistics and result while a sample is in the caches.

Y. Wu and K. He, Group Normalization, arXiv 1803.08494. Each sample is a batch of its own to the
passes over memory of :mod:`daskdl.kernels.norms.batchnorm`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.norms.batchnorm import (
    ROW,
    add_gradients,
    add_moments,
    put_gradient,
    put_normalised,
)
from daskdl.kernels.norms.batchnorm import SUM_ROW as SUMMED
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.nontemporal import streams
from daskdl.kernels.runtime.parts import n_fixed, over_parts
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]


def forward(
    x: Array, weight: Array, bias: Array, groups: int, eps: float
) -> tuple[Array, NDArray[np.float64]]:
    """Return the normalised images and, for the way back, mean and 1 / deviation of each group.

    Parameters
    ----------
    x : array (N, P, C)
    weight, bias : arrays (C,)
    groups : int
        Divides C.
    eps : float
        Is added to the variance.

    Returns
    -------
    y : array (N, P, C)
    statistics : float64 array (N, 2, groups)
    """
    n, pixels, channels = x.shape
    y, statistics = empty(x.shape, x.dtype), np.empty((n, 2, groups))
    if x.size:
        images, new = flat(x).reshape(n, -1), y.reshape(n, -1)
        own = flat(weight, x.dtype), flat(bias, x.dtype), eps
        least = grain.least(grain.STREAM, pixels * channels)
        over_range(_forward, n, least, images, *own, new, statistics, _past(y))
    return y, statistics


def backward(
    dy: Array, x: Array, weight: Array, statistics: NDArray[np.float64]
) -> tuple[Array, NDArray[np.float64]]:
    """Return the gradient to ``x`` and, as (2, C) in float64, those to weight and bias."""
    n, pixels, channels = x.shape
    least = grain.least(grain.STREAM, pixels * channels)
    dx, totals = empty(x.shape, x.dtype), np.zeros((n_fixed(n, least), 2, channels))  # of parts
    if x.size:
        gradients, images = flat(dy, x.dtype).reshape(n, -1), flat(x).reshape(n, -1)
        own = flat(weight, x.dtype), statistics, dx.reshape(n, -1), totals, _past(dx)
        over_parts(_backward, n, least, gradients, images, *own)
    return dx, totals.sum(0)


def _past(result: Array) -> bool | None:
    """Return whether to write it past the caches: all of its pixels are aligned then."""
    return True if result.shape[2] % 16 == 0 and streams(result) else None


# Below, loops over repeats of the channels and not remainders: small images have hardly more
# numbers than a row of lanes, and a division takes as long as all that is done with a number.


@fastjit
def _fold(lanes, channels):
    """Return the sums (2, C) over the lanes (2, width) of each channel."""
    sums = np.zeros((2, channels))
    for k in range(2):
        for start in range(0, lanes.shape[1], channels):
            for c in range(channels):
                sums[k, c] += lanes[k, start + c]
    return sums


@fastjit
def _repeat(lanes, rows, channels):
    """Fill the first rows of lanes (K, width) with what their first channels have."""
    for k in range(rows):
        for start in range(channels, lanes.shape[1], channels):
            for c in range(channels):
                lanes[k, start + c] = lanes[k, c]


@fastjit
def _forward(x, weight, bias, eps, y, statistics, past, which, start, stop):
    channels, groups, size = weight.size, statistics.shape[2], x.shape[1]
    many, pixels = channels // groups, size // channels
    summed, width = channels * max(1, SUMMED // channels), channels * max(1, ROW // channels)
    shift, lanes = np.empty((1, summed), x.dtype), np.empty((3, width), x.dtype)
    totals, floor = np.empty((1, 2, summed)), x.dtype.type(np.nan)
    for n in range(start, stop):
        for c in range(channels):
            shift[0, c] = x[n, c]
        _repeat(shift, 1, channels)
        totals[:] = 0
        add_moments(x[n], shift, totals, 0, 0, -(-size // summed))
        sums = _fold(totals[0], channels)
        for group in range(groups):
            first, total, squares = group * many, 0.0, 0.0
            for c in range(first, first + many):
                total += sums[0, c] + pixels * np.float64(shift[0, c])
            mean = total / (many * pixels)
            for c in range(first, first + many):
                off = shift[0, c] - mean  # of the squares from the group's mean, not the shift
                squares += sums[1, c] + off * (2 * sums[0, c] + pixels * off)
            inverse = 1 / np.sqrt(max(squares / (many * pixels), 0 * squares) + eps)
            statistics[n, 0, group], statistics[n, 1, group] = mean, inverse
            lost = mean - np.float64(x.dtype.type(mean))  # the lanes' mean is rounded
            for c in range(first, first + many):
                factor = inverse * weight[c]
                lanes[0, c], lanes[1, c], lanes[2, c] = mean, factor, bias[c] - lost * factor
        _repeat(lanes, 3, channels)
        put_normalised(x[n], y[n], lanes, floor, past)


@fastjit
def _backward(dy, x, weight, statistics, dx, parts, past, which, start, stop):
    channels, groups, size = weight.size, statistics.shape[2], x.shape[1]
    many, pixels = channels // groups, size // channels
    summed, width = channels * max(1, SUMMED // channels), channels * max(1, ROW // channels)
    means, lanes = np.zeros((3, summed), x.dtype), np.zeros((5, width), x.dtype)
    totals, floor = np.empty((1, 2, summed)), x.dtype.type(np.nan)
    for n in range(start, stop):
        for group in range(groups):
            for c in range(group * many, group * many + many):
                means[0, c] = statistics[n, 0, group]
        _repeat(means, 1, channels)
        totals[:] = 0
        add_gradients(dy[n], x[n], means, floor, totals, 0, 0, -(-size // summed))
        sums = _fold(totals[0], channels)
        for group in range(groups):
            mean, inverse, first = statistics[n, 0, group], statistics[n, 1, group], group * many
            lost = mean - np.float64(x.dtype.type(mean))  # the lanes' mean is rounded
            along, across = 0.0, 0.0
            for c in range(first, first + many):
                sums[1, c] = (sums[1, c] - lost * sums[0, c]) * inverse
                along += sums[0, c] * weight[c] / (many * pixels)
                across += sums[1, c] * weight[c] / (many * pixels)
                parts[which, 0, c] += sums[1, c]
                parts[which, 1, c] += sums[0, c]
            slope = inverse * inverse * across
            for c in range(first, first + many):
                lanes[0, c], lanes[1, c] = mean, inverse * weight[c]
                lanes[3, c], lanes[4, c] = inverse * along - slope * lost, slope
        _repeat(lanes, 2, channels)
        _repeat(lanes[3:], 2, channels)
        put_gradient(dy[n], x[n], dx[n], lanes, floor, past)
