"""Batch normalisation: statistics of each channel in one pass over memory, the result in another.

S. Ioffe and C. Szegedy, Batch Normalization, arXiv 1502.03167. Memory limits its speed: forward
reads the input twice and writes the result, backward reads input and gradient twice and writes one
array. A ReLU that follows is part of both passes; backward computes its sign again.

The end of a residual block (K. He et al., arXiv 1512.03385) is one pass, too: forward adds the
residual; backward adds the gradients from a block's two readers, sets those to zero that the ReLU
blocked, and computes the sums for the norm's gradient.

Rows of few channels are read as fewer, longer rows of *lanes*; each lane belongs to one channel. So
inner loops are long and their vectors aligned, with any number of channels.
"""

from __future__ import annotations

from math import gcd, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit, jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.passes import drain, flat, put, streams
from daskdl.kernels.runtime.team import n_fixed, over_parts, over_rows

Array = NDArray[Any]

#: Approximate lanes of a row; more with more channels. Loops of sums cost more to start, and keep
#: fewer rows of lanes in the L1 cache, so their rows are longer.
ROW, SUM_ROW = 256, 1024

#: Rows that are summed in the input's dtype before the sums are added in float64.
BLOCK = 64

#: Number of rows that give the shift of the sums.
SAMPLE = 16


def moments(x: Array) -> Array:
    """Return mean and population variance of each channel, float64 (2, C).

    They come from sums of ``x - shift`` and of its squares. The shift is the mean of a few rows
    from all over the batch, so that a mean that is large against the deviation costs no digits.
    """
    source, channels = flat(x), x.shape[-1]
    shift = _sampled(source, channels, repeats(channels, SUM_ROW))
    parts = sums_of(add_moments, x, source, shift)
    return _moments(parts, shift, x.size // channels)


def normalise(
    x: Array, mean: Array, scale: Array, bias: Array, relu: bool, residual: Array | None = None
) -> Array:
    """Return ``(x - mean) * scale + bias + residual``, or 0 where that is negative with ``relu``.

    Mean, scale and bias are float64 (C,).
    """
    source, (new, past) = flat(x), result_for(x)
    added = None if residual is None else flat(residual, x.dtype)
    lanes = lanes_of(source, repeats(mean.size, ROW), mean, scale, bias)
    floor = x.dtype.type(0 if relu else nan)
    in_rows(put_normalised, x, (source, added, new), lanes, floor, past)
    return new.reshape(x.shape)


def float_lanes(mean: Array, scale: Array, bias: Array) -> NDArray[np.float32]:
    """Return the float32 numbers (3, C) by which :func:`normalise` computes float32 results."""
    lanes: NDArray[np.float32] = lanes_of(flat(np.zeros(1, np.float32)), 1, mean, scale, bias)
    return lanes[:3]


def gradient_sums(dy: Array, x: Array, mean: Array, scale: Array, bias: Array, relu: bool) -> Array:
    """Return the sums over all rows of the gradient ``dy`` and of ``dy * (x - mean)``: (2, C).

    They are float64; with ``relu``, only numbers that :func:`normalise` let through count.
    """
    gradients, source = flat(dy, x.dtype), flat(x)
    lanes = lanes_of(source, repeats(mean.size, SUM_ROW), mean, scale, bias)
    floor = x.dtype.type(0 if relu else nan)
    return two_sums(sums_of(add_gradients, x, gradients, source, lanes, floor), lanes, mean)


def input_gradient(
    dy: Array,
    x: Array,
    mean: Array,
    scale: Array,
    bias: Array,
    relu: bool,
    *,
    offset: Array,
    slope: Array,
) -> Array:
    """Return ``dy * scale - offset - slope * (x - mean)``; ``offset``, ``slope`` are float64 (C,).

    With ``relu``, ``dy`` counts as 0 where :func:`normalise` returned 0.
    """
    gradients, source, (new, past) = flat(dy, x.dtype), flat(x), result_for(x)
    lanes = lanes_of(source, repeats(mean.size, ROW), mean, scale, bias, offset, slope)
    floor = x.dtype.type(0 if relu else nan)
    in_rows(put_gradient, x, (gradients, source, new), lanes, floor, past)
    return new.reshape(x.shape)


def gradient_plus(
    dy: Array, more: Array | None, y: Array, x: Array, mean: Array
) -> tuple[Array, Array]:
    """Return ``dy + more`` where ``y`` is positive and 0 elsewhere, and its two sums by channel.

    ``dy`` and ``more`` are the gradients to ``y`` from one or two readers; ``y`` is the result of
    the :func:`normalise` of ``x`` with a residual and a ReLU. The sums, float64 (2, C), are of the
    gradient and of ``gradient * (x - mean)`` over all rows.
    """
    source, (new, past) = flat(x), result_for(x, SUM_ROW)
    lanes = lanes_of(source, repeats(mean.size, SUM_ROW), mean)
    second = None if more is None else flat(more, x.dtype)
    arguments = flat(y, x.dtype), flat(dy, x.dtype), second, source, new, lanes, past
    return new.reshape(x.shape), two_sums(sums_of(_put_gradient_plus, x, *arguments), lanes, mean)


def repeats(channels: int, lanes: int) -> int:
    """Return the number of rows of channels in a row of about ``lanes`` lanes."""
    if not channels:
        return 1
    unit = 16 // gcd(channels, 16)  # makes all rows aligned
    return unit * max(1, lanes // (unit * channels)) if unit * channels <= 2048 else 1


def result_for(x: Array, lanes: int = ROW) -> tuple[Array, bool | None]:
    """Return a new vector for x's numbers, and True if it bypasses the caches, else None."""
    new = empty(x.size, x.dtype)
    aligned = x.shape[-1] * repeats(x.shape[-1], lanes) % 16 == 0
    return new, True if aligned and streams(new) else None


def in_rows(kernel: Any, x: Array, vectors: tuple[Any, ...], lanes: Array, *more: Any) -> None:
    """Call a kernel on parts of flat vectors that start with a row of lanes."""
    width = lanes.shape[1]
    if x.size:
        over_rows(kernel, vectors, grain.STREAM // width, lanes, *more, unit=width)


def sums_of(kernel: Any, x: Array, *arguments: Any) -> Array:
    """Return two sums over all rows of x, in parts: (parts, 2, repeats, C).

    ``kernel`` adds the sums over some rows of lanes to a part, which has lanes, too.
    """
    channels = x.shape[-1]
    many = repeats(channels, SUM_ROW)
    width = channels * many
    items, least = -(-x.size // width) if width else 0, grain.STREAM // max(1, width)
    parts = np.zeros((n_fixed(items, least), 2, many, channels))
    if x.size:
        lanes = parts.reshape(len(parts), 2, width)
        over_parts(kernel, items, least, *arguments, lanes)
    return parts


# Arithmetic of a few numbers is compiled, too: a pass over memory evicts numpy's code from the
# caches, so that a dozen calls of numpy would take longer than a small pass.


@jit
def _total(parts):
    """Return sums (2, C) of parts (parts, 2, repeats, C)."""
    n, _, many, channels = parts.shape
    totals = np.zeros((2, channels))
    for i in range(n):
        for k in range(2):
            for j in range(many):
                for c in range(channels):
                    totals[k, c] += parts[i, k, j, c]
    return totals


@jit
def _moments(parts, shift, rows):
    """Return mean and variance (2, C) from the sums of ``x - shift`` and of its squares."""
    of_channels = _total(parts)
    for c in range(of_channels.shape[1]):
        offset = of_channels[0, c] / rows
        variance = of_channels[1, c] / rows - offset * offset
        of_channels[0, c] = shift[0, c] + offset
        of_channels[1, c] = 0.0 if variance < 0 else variance  # NaN stays
    return of_channels


@jit
def two_sums(parts, lanes, mean):
    """Return the sums (2, C) of a gradient and of its products with ``x - mean``.

    The parts were computed with the lanes' mean, which is rounded.
    """
    sums = _total(parts)
    for c in range(mean.size):
        sums[1, c] -= (mean[c] - lanes[0, c]) * sums[0, c]
    return sums


@jit
def affine(variance, eps, weight, bias):
    """Return 1 / deviation, scale and shift of each channel, (3, C) in float64.

    ``weight`` and ``bias`` are arrays (C,) or None.
    """
    factors = np.zeros((3, variance.size))
    for c in range(variance.size):
        inverse = 1 / np.sqrt(variance[c] + eps)
        factors[0, c], factors[1, c] = inverse, inverse
        if weight is not None:
            factors[1, c] *= weight[c]
        if bias is not None:
            factors[2, c] = bias[c]
    return factors


@jit
def shares(inverse, scale, sums, rows):
    """Return the shares of mean and variance in the gradient to the input: offset, slope, (2, C).

    ``sums`` (2, C) come from :func:`gradient_sums` over ``rows`` rows.
    """
    shares_of = np.empty(sums.shape)
    for c in range(scale.size):
        shares_of[0, c] = scale[c] * sums[0, c] / rows
        shares_of[1, c] = scale[c] * inverse[c] ** 2 * sums[1, c] / rows
    return shares_of


@jit
def follow(running_mean, running_variance, mean, variance, momentum):
    """Move running averages (C,), in place, towards the latest mean and variance (C,)."""
    for c in range(running_mean.size):
        running_mean[c] += momentum * (mean[c] - running_mean[c])
        running_variance[c] += momentum * (variance[c] - running_variance[c])


@jit
def lanes_of(x, many, mean, scale=None, bias=None, offset=None, slope=None):
    """Return mean, scale, bias, offset and slope in lanes (5, many * C); 0 for missing ones.

    Lanes have the dtype of ``x``, arguments are float64 (C,). Bias and offset compensate for the
    rounding of the mean.
    """
    channels = mean.size
    lanes = np.zeros((5, many * channels), x.dtype)
    for c in range(channels):
        rounded = x.dtype.type(mean[c])
        lost = mean[c] - rounded
        lanes[0, c] = rounded
        if scale is not None:
            lanes[1, c], lanes[2, c] = scale[c], bias[c] - lost * scale[c]
        if offset is not None:
            lanes[3, c], lanes[4, c] = offset[c] - slope[c] * lost, slope[c]
    for k in range(1, many):
        lanes[:, k * channels : (k + 1) * channels] = lanes[:, :channels]
    return lanes


@jit
def _sampled(x, channels, many):
    """Return the means of a few rows of ``x`` in lanes (1, many * channels)."""
    rows = x.size // channels
    step = max(1, rows // SAMPLE)
    sums, lanes = np.zeros(channels), np.empty((1, many * channels), x.dtype)
    for row in range(0, rows, step):
        for c in range(channels):
            sums[c] += x[row * channels + c]
    sums /= max(1, -(-rows // step))
    for k in range(many):
        lanes[0, k * channels : (k + 1) * channels] = sums
    return lanes


# Below, offsets instead of slices: a slice inside a loop counts references, which takes longer than
# a row. Gradients are loaded for either sign: a conditional load would not vectorise.


@fastjit
def add_moments(x, lanes, parts, which, begin, end):
    """Add to parts[which] the sums (2, width) of x - lanes[0] and of its squares, by rows."""
    shift, totals = lanes[0], parts[which]
    width = shift.size
    sums = np.zeros((2, width), x.dtype)
    s, q = sums[0], sums[1]
    last = min(end * width, x.size)
    for first in range(begin * width, last, BLOCK * width):
        stop = min(first + BLOCK * width, last)
        fours = first + (stop - first) // (4 * width) * 4 * width
        for start in range(first, fours, 4 * width):
            for c in range(width):
                p, h = np.uintp(start + c), shift[c]
                d0, d1 = x[p] - h, x[p + np.uintp(width)] - h
                d2, d3 = x[p + np.uintp(2 * width)] - h, x[p + np.uintp(3 * width)] - h
                s[c] += (d0 + d1) + (d2 + d3)
                q[c] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
        for start in range(fours, stop, width):
            for c in range(min(width, stop - start)):
                d = x[np.uintp(start + c)] - shift[c]
                s[c] += d
                q[c] += d * d
        totals += sums
        sums[:] = 0


@fastjit
def put_normalised(x, residual, new, lanes, floor, past):
    """Write (x - mean) * scale + bias of the lanes, plus the residual, or the floor if larger.

    The residual may be None.
    """
    mean, scale, bias = lanes[0], lanes[1], lanes[2]
    width = mean.size
    for first in range(0, x.size, width):
        for c in range(min(width, x.size - first)):
            p = np.uintp(first + c)
            v = (x[p] - mean[c]) * scale[c] + bias[c]
            if residual is not None:
                v += residual[p]
            put(new, first + c, floor if v < floor else v, past)  # NaN stays
    drain(past)


@fastjit
def add_gradients(dy, x, lanes, floor, parts, which, begin, end):
    """Add to parts[which] the sums (2, width) of dy and of dy * (x - mean), in rows of lanes.

    Lanes are mean, scale and bias; only what :func:`put_normalised` let through counts.
    """
    mean, scale, bias, totals = lanes[0], lanes[1], lanes[2], parts[which]
    width, zero = mean.size, x.dtype.type(0)
    sums = np.zeros((2, width), x.dtype)
    s, q = sums[0], sums[1]
    last = min(end * width, x.size)
    for first in range(begin * width, last, BLOCK * width):
        stop = min(first + BLOCK * width, last)
        twos = first + (stop - first) // (2 * width) * 2 * width
        for start in range(first, twos, 2 * width):
            for c in range(width):
                p = np.uintp(start + c)
                d0, d1 = x[p] - mean[c], x[p + np.uintp(width)] - mean[c]
                g0, g1 = dy[p], dy[p + np.uintp(width)]
                g0 = zero if d0 * scale[c] + bias[c] <= floor else g0
                g1 = zero if d1 * scale[c] + bias[c] <= floor else g1
                s[c] += g0 + g1
                q[c] += g0 * d0 + g1 * d1
        for start in range(twos, stop, width):
            for c in range(min(width, stop - start)):
                d, g = x[np.uintp(start + c)] - mean[c], dy[np.uintp(start + c)]
                g = zero if d * scale[c] + bias[c] <= floor else g
                s[c] += g
                q[c] += g * d
        totals += sums
        sums[:] = 0


@fastjit
def put_gradient(dy, x, new, lanes, floor, past):
    """Write dy * scale - offset - slope * (x - mean) to ``new``, dy as in :func:`add_gradients`.

    Lanes are mean, scale, bias, offset and slope.
    """
    mean, scale, bias, offset, slope = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4]
    width, zero = mean.size, x.dtype.type(0)
    for first in range(0, x.size, width):
        for c in range(min(width, x.size - first)):
            d, g = x[np.uintp(first + c)] - mean[c], dy[np.uintp(first + c)]
            g = zero if d * scale[c] + bias[c] <= floor else g
            put(new, first + c, g * scale[c] - offset[c] - slope[c] * d, past)
    drain(past)


@fastjit
def _put_gradient_plus(y, dy, more, x, new, lanes, past, parts, which, begin, end):
    """Write rows ``begin`` to ``end`` of lanes, and add their sums (2, width) to parts[which]."""
    mean, totals = lanes[0], parts[which]
    width, zero = mean.size, x.dtype.type(0)
    sums = np.zeros((2, width), x.dtype)
    s, q = sums[0], sums[1]
    last = min(end * width, x.size)
    for first in range(begin * width, last, BLOCK * width):
        for start in range(first, min(first + BLOCK * width, last), width):
            for c in range(min(width, last - start)):
                p = np.uintp(start + c)
                g = dy[p] if more is None else dy[p] + more[p]
                g = zero if y[p] <= zero else g
                put(new, start + c, g, past)
                s[c] += g
                q[c] += g * (x[p] - mean[c])
        totals += sums
        sums[:] = 0
    drain(past)
