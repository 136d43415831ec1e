"""Group normalisation of images: statistics and result while a sample is in the caches.

Y. Wu and K. He, Group Normalization, arXiv 1803.08494. The passes of
:mod:`daskdl.kernels.norms.batchnorm` treat each sample as a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.norms.batchnorm import BLOCK, ROW, add_moments, put_normalised
from daskdl.kernels.norms.batchnorm import SUM_ROW as SUMMED
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.passes import drain, flat, put, streams
from daskdl.kernels.runtime.team import n_fixed, over_parts, over_range

Array = NDArray[Any]


def forward(
    x: Array, weight: Array, bias: Array, groups: int, eps: float
) -> tuple[Array, NDArray[np.float64]]:
    """Return normalised images (N, P, C), and mean and 1 / deviation by group for backward.

    The latter are float64 (N, 2, groups); ``groups`` divides C, ``eps`` is added to the variance.
    """
    n, pixels, channels = x.shape
    y, statistics = empty(x.shape, x.dtype), np.empty((n, 2, groups))
    if x.size:
        images, new = flat(x).reshape(n, -1), y.reshape(n, -1)
        arguments = flat(weight, x.dtype), flat(bias, x.dtype), eps
        least = grain.least(grain.STREAM, pixels * channels)
        over_range(_forward, n, least, images, *arguments, new, statistics, _past(y))
    return y, statistics


def backward(
    dy: Array, x: Array, weight: Array, statistics: NDArray[np.float64]
) -> tuple[Array, NDArray[np.float64]]:
    """Return the gradient to ``x``, and those to weight and bias, float64 (2, C)."""
    n, pixels, channels = x.shape
    least = grain.least(grain.STREAM, pixels * channels)
    dx, totals = empty(x.shape, x.dtype), np.zeros((n_fixed(n, least), 2, channels))  # of parts
    if x.size:
        gradients, images = flat(dy, x.dtype).reshape(n, -1), flat(x).reshape(n, -1)
        arguments = flat(weight, x.dtype), statistics, dx.reshape(n, -1), totals, _past(dx)
        over_parts(_backward, n, least, gradients, images, *arguments)
    return dx, totals.sum(0)


def _past(result: Array) -> bool | None:
    """Return True if a result bypasses the caches, which needs aligned pixels; else None."""
    return True if result.shape[2] % 16 == 0 and streams(result) else None


# Below, loops over repeats of the channels instead of remainders: small images have few more
# numbers than a row of lanes, and a division takes as long as all other work on a number.


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
    """Repeat the first channels of the first rows of lanes (K, width) along these rows."""
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
                off = shift[0, c] - mean  # move squares from the shift to the group's mean
                squares += sums[1, c] + off * (2 * sums[0, c] + pixels * off)
            inverse = 1 / np.sqrt(max(squares / (many * pixels), 0 * squares) + eps)
            statistics[n, 0, group], statistics[n, 1, group] = mean, inverse
            lost = mean - np.float64(x.dtype.type(mean))  # the lanes' mean is rounded
            for c in range(first, first + many):
                factor = inverse * weight[c]
                lanes[0, c], lanes[1, c], lanes[2, c] = mean, factor, bias[c] - lost * factor
        _repeat(lanes, 3, channels)
        put_normalised(x[n], None, y[n], lanes, floor, past)


@fastjit
def _add_products(dy, x, mean, totals):
    """Add to totals (2, width) the sums of dy and of dy * (x - mean), in rows of lanes."""
    width, whole = mean.size, x.size // mean.size
    sums = np.zeros((2, width), x.dtype)
    s, q = sums[0], sums[1]
    for begin in range(0, whole, BLOCK):
        end = min(begin + BLOCK, whole)
        fours = begin + (end - begin) // 4 * 4
        for first in range(begin, fours, 4):
            for c in range(np.uintp(width)):
                p0 = np.uintp(first * width) + c
                p1 = p0 + np.uintp(width)
                p2 = p1 + np.uintp(width)
                p3 = p2 + np.uintp(width)
                m = mean[c]
                s[c] += (dy[p0] + dy[p1]) + (dy[p2] + dy[p3])
                q[c] += (dy[p0] * (x[p0] - m) + dy[p1] * (x[p1] - m)) + (
                    dy[p2] * (x[p2] - m) + dy[p3] * (x[p3] - m)
                )
        for first in range(fours, end):
            for c in range(np.uintp(width)):
                p = np.uintp(first * width) + c
                s[c] += dy[p]
                q[c] += dy[p] * (x[p] - mean[c])
        totals += sums
        sums[:] = 0
    for c in range(np.uintp(x.size - whole * width)):
        p = np.uintp(whole * width) + c
        totals[0, c] += dy[p]
        totals[1, c] += dy[p] * (x[p] - mean[c])


@fastjit
def _put_gradient(dy, x, new, lanes, past):
    """Write dy * scale - slope * (x - mean) - offset; lanes are scale, slope, mean and offset."""
    scale, slope, mean, offset = lanes[0], lanes[1], lanes[2], lanes[3]
    width = mean.size
    for first in range(0, x.size, width):
        for c in range(min(width, x.size - first)):
            p = np.uintp(first + c)
            put(new, first + c, dy[p] * scale[c] - slope[c] * (x[p] - mean[c]) - offset[c], past)
    drain(past)


@fastjit
def _backward(dy, x, weight, statistics, dx, parts, past, which, start, stop):
    channels, groups, size = weight.size, statistics.shape[2], x.shape[1]
    many, pixels = channels // groups, size // channels
    summed, width = channels * max(1, SUMMED // channels), channels * max(1, ROW // channels)
    means, lanes = np.zeros((1, summed), x.dtype), np.zeros((4, width), x.dtype)
    totals = np.empty((2, summed))
    for n in range(start, stop):
        for group in range(groups):
            for c in range(group * many, group * many + many):
                means[0, c] = statistics[n, 0, group]
        _repeat(means, 1, channels)
        totals[:] = 0
        _add_products(dy[n], x[n], means[0], totals)
        sums = _fold(totals, channels)
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
                lanes[0, c], lanes[1, c] = inverse * weight[c], slope
                lanes[2, c], lanes[3, c] = mean, inverse * along - slope * lost
        _repeat(lanes, 4, channels)
        _put_gradient(dy[n], x[n], dx[n], lanes, past)
