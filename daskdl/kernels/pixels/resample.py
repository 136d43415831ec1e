"""Images resized, cropped, mirrored and normalised in one pass, a whole batch in one call.

A result is computed row by row: a weighted sum of source rows over the columns that the window
needs, then weighted sums of this row's pixels. Nothing outside the window is computed, and only one
row is stored in between. With ``antialias`` the weights are Pillow's: if an image shrinks, the
filter is stretched, so that every source pixel counts. Without it they are OpenCV's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import carray
from numpy.typing import NDArray

from daskdl.kernels.pixels.interpolation import (
    PIXELS,
    VECTOR,
    addresses,
    copy,
    mirror_levels,
    pointer,
    weigh,
    weigh_pairs,
)
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]

#: Columns of a batch's geometry (N, 12): the part of the source that is resized; its new size; the
#: window of the resized part that is the result; and whether the result is mirrored.
TOP, LEFT, HEIGHT, WIDTH, ROWS, COLUMNS, Y, X, H, W, UPSIDE_DOWN, MIRRORED = range(12)

#: Numbers of the filters in kernels, by name.
FILTERS = {"nearest": 0, "bilinear": 1, "bicubic": 2}


def resample(
    sources: Sequence[Array] | Array,
    geometry: NDArray[np.int64],
    results: Sequence[Array] | Array,
    *,
    filter: str = "bilinear",
    antialias: bool = True,
    scale: Array | None = None,
    shift: Array | None = None,
) -> None:
    """Write the windows of resized images.

    Sources are uint8 or float32 (height, width, C), a sequence or one array, perhaps with gaps
    between rows; results are like them, C-contiguous, uint8 only from uint8. ``geometry`` is int64
    (N, 12), see :data:`TOP` and the following. Filters are "nearest", "bilinear" and "bicubic",
    stretched with ``antialias`` if an image shrinks. Float results are ``scale * value + shift``,
    (C,) each; values from uint8 are first rounded to whole levels.
    """
    if not len(sources):
        return
    channels = sources[0].shape[2]
    if isinstance(sources, np.ndarray):
        strides = np.full(len(sources), sources.strides[1])
    else:
        strides = np.array([s.strides[0] for s in sources])
    rows = strides // sources[0].itemsize
    places = np.stack([addresses(sources), rows, addresses(results)], 1)
    scale = np.ones(channels, np.float32) if scale is None else scale
    shift = np.zeros(channels, np.float32) if shift is None else shift
    work = max(1, int(geometry[:, H].max()) * int(geometry[:, W].max()) * channels)
    over_range(
        _resample, len(sources), grain.least(grain.STREAM, work), places, geometry, channels,
        FILTERS[filter], antialias, scale, shift,
        sources[0].dtype != np.uint8, results[0].dtype != np.uint8,
    )  # fmt: skip


@fastjit
def _resample(
    places, geometry, channels, filter, antialias, scale, shift, floats_in, floats_out,
    which, start, stop,
):  # fmt: skip
    # Both types at each address; one is used. Four kernels would take four times to compile.
    a_level, a_float = np.uint8(0), np.float32(0)
    for i in range(start, stop):
        g = geometry[i]
        stride = places[i, 1]
        begin = g[TOP] * stride + g[LEFT] * channels
        levels = carray(pointer(places[i, 0], a_level), (1,))
        floats = carray(pointer(places[i, 0], a_float), (1,))
        to_levels = carray(pointer(places[i, 2], a_level), (1,))
        to_floats = carray(pointer(places[i, 2], a_float), (1,))
        wide = g[W] * channels
        scales, shifts = np.empty(wide, np.float32), np.empty(wide, np.float32)
        for x in range(wide):
            scales[x], shifts[x] = scale[x % channels], shift[x % channels]
        if g[HEIGHT] != g[ROWS] or g[WIDTH] != g[COLUMNS]:
            _resize(
                levels, floats, floats_in, begin, stride, g, channels, filter, antialias,
                to_levels, to_floats, floats_out, scales, shifts,
            )  # fmt: skip
        elif floats_in:
            _cut(floats, begin, stride, g, channels, to_floats, scales, shifts)
        elif floats_out:
            _cut(levels, begin, stride, g, channels, to_floats, scales, shifts)
        else:
            _cut(levels, begin, stride, g, channels, to_levels, scales, shifts)


@fastjit
def _cut(source, begin, stride, g, channels, result, scales, shifts):
    """Copy a window, mirrored or not."""
    wide = g[W] * channels
    for i in range(g[H]):
        y = g[Y] + (g[H] - 1 - i if g[UPSIDE_DOWN] else i)
        here, there = np.uint64(begin + y * stride + g[X] * channels), np.uint64(i * wide)
        if g[MIRRORED]:
            if channels == 3:  # LLVM vectorises three statements, but not a loop over three
                one, two, done = np.uint64(1), np.uint64(2), 0
                if result.itemsize == 1:
                    while done + PIXELS <= g[W]:
                        pixels = np.uint64(3 * (g[W] - PIXELS - done))
                        mirror_levels(source, here + pixels, result, there + np.uint64(3 * done))
                        done += PIXELS
                for j in range(done, g[W]):
                    to, k = there + np.uint64(3 * j), here + np.uint64(3 * (g[W] - 1 - j))
                    _put(result, to, source[k], scales[0], shifts[0])
                    _put(result, to + one, source[k + one], scales[1], shifts[1])
                    _put(result, to + two, source[k + two], scales[2], shifts[2])
            else:
                for j in range(g[W]):
                    pixel = here + np.uint64((g[W] - 1 - j) * channels)
                    for c in range(channels):
                        x = np.uint64(j * channels + c)
                        value = source[pixel + np.uint64(c)]
                        _put(result, there + x, value, scales[x], shifts[x])
        elif result.itemsize == 1:
            copy(source, here, result, there, np.uint64(wide))
        else:
            for n in range(wide):
                x = np.uint64(n)
                _put(result, there + x, source[here + x], scales[x], shifts[x])


@fastjit
def _resize(
    levels, floats, floats_in, begin, stride, g, channels, filter, antialias,
    to_levels, to_floats, floats_out, scales, shifts,
):  # fmt: skip
    top, rows, _, _ = _taps(g[HEIGHT], g[ROWS], g[Y], g[H], g[UPSIDE_DOWN], filter, antialias)
    left, columns, first, last = _taps(
        g[WIDTH], g[COLUMNS], g[X], g[W], g[MIRRORED], filter, antialias
    )
    count = columns.shape[1]
    length = (min(last + count, g[WIDTH]) - first) * channels
    # Weights beyond the edge are 0, but vectors are loaded there, too.
    line = np.zeros(length + (count + 1) * channels + 2 * VECTOR, np.float32)
    paired = _paired(columns)
    wide = g[W] * channels
    row = np.empty(wide + VECTOR, np.float32)
    for i in range(g[H]):
        here, taps = begin + top[i] * stride + first * channels, rows.shape[1]
        taps = min(taps, g[HEIGHT] - top[i])
        if floats_in:
            _add_rows(floats, here, stride, rows[i], taps, line, length)
        else:
            _add_rows(levels, here, stride, rows[i], taps, line, length)
        if channels == 3:
            _add_columns(line, left, first, paired, row)
        else:
            for j in range(g[W]):
                pixel, target = (left[j] - first) * channels, j * channels
                for c in range(0, channels, VECTOR):
                    weigh(line, pixel + c, channels, columns, j * count, count, row, target + c)
        if filter == 2 and not floats_in:  # the other filters' weights are not negative
            for k in range(wide):
                row[k] = min(max(row[k], np.float32(0)), np.float32(255))
        there, half = np.uint64(i * wide), np.float32(0.5)
        if not floats_out:
            for k in range(wide):
                x = np.uint64(k)
                to_levels[there + x] = np.uint8(np.int32(row[x] + half))
        elif floats_in:
            for k in range(wide):
                x = np.uint64(k)
                to_floats[there + x] = row[x] * scales[x] + shifts[x]
        else:
            for k in range(wide):
                x = np.uint64(k)
                to_floats[there + x] = np.floor(row[x] + half) * scales[x] + shifts[x]


@fastjit
def _add_rows(source, here, stride, weights, count, line, length):
    """Write the weighted sum of ``count`` rows, two at a time to read and write the sum less."""
    k = 0
    while k < count:
        a, b = np.uint64(here + k * stride), np.uint64(here + min(k + 1, count - 1) * stride)
        weight, other = weights[k], weights[k + 1] if k + 1 < count else np.float32(0)
        if k == 0:
            for n in range(length):
                x = np.uint64(n)
                line[x] = weight * np.float32(source[a + x]) + other * np.float32(source[b + x])
        else:
            for n in range(length):
                x = np.uint64(n)
                line[x] += weight * np.float32(source[a + x]) + other * np.float32(source[b + x])
        k += 2


@fastjit
def _paired(weights):
    """Return weights (n, taps) in the form of :func:`weigh_pairs`, (n, pairs, 8)."""
    n, taps = weights.shape
    paired = np.zeros((n, (taps + 1) // 2, 8), np.float32)
    for j in range(n):
        for k in range(taps):
            for c in range(3):
                paired[j, k // 2, 3 * (k % 2) + c] = weights[j, k]
    return paired


@fastjit
def _add_columns(line, left, first, paired, row):
    """Write the weighted sums of a line's pixels of three channels."""
    pairs = paired.shape[1]
    # One or two pairs are enough unless an image shrinks much; as constants they let LLVM do
    # without a loop.
    if pairs == 1:
        for j in range(len(left)):
            weigh_pairs(line, 3 * (left[j] - first), paired, 8 * j, 1, row, 3 * j)
    elif pairs == 2:
        for j in range(len(left)):
            weigh_pairs(line, 3 * (left[j] - first), paired, 16 * j, 2, row, 3 * j)
    else:
        for j in range(len(left)):
            weigh_pairs(line, 3 * (left[j] - first), paired, 8 * pairs * j, pairs, row, 3 * j)


@fastjit
def _taps(length, resized, start, count, backwards, filter, antialias):
    """Return first pixels and weights (count, n) of results, and the least and largest first pixel.

    Pixel j of the resized axis has its centre at (j + 1/2) length / resized of the source.
    """
    scale = length / resized
    stretch = max(scale, 1.0) if antialias and filter else 1.0
    reach = stretch * max(filter, 0.5)
    first = np.empty(count, np.int64)
    weights = np.zeros((count, int(2 * reach) + 2), np.float32)
    most = 1
    for i in range(count):
        j = start + (count - 1 - i if backwards else i)
        centre = (j + 0.5) * scale
        if filter == 0:  # in integers, since every other centre may lie between two pixels
            first[i], weights[i, 0] = (2 * j + 1) * length // (2 * resized), 1
            continue
        low = int(np.floor(centre - reach + 0.5))
        high = int(np.floor(centre + reach + 0.5))
        begin, total = max(low, 0), 0.0
        end = min(high, length)
        if antialias:  # as Pillow: pixels outside do not count
            for k in range(begin, end):
                total += _weight((k + 0.5 - centre) / stretch, filter)
        first[i] = begin
        for k in range(low, high):  # as OpenCV: the edge repeats
            inside = min(max(k, begin), end - 1)
            if inside == k or not antialias:
                value = _weight((k + 0.5 - centre) / stretch, filter)
                weights[i, inside - begin] += value / (total if antialias else 1.0)
        most = max(most, end - begin)
    lowest, highest = first[0], first[0]
    used = np.empty((count, most), np.float32)
    for i in range(count):
        lowest, highest = min(lowest, first[i]), max(highest, first[i])
        for k in range(most):
            used[i, k] = weights[i, k]
    return first, used, lowest, highest


@fastjit
def _weight(x, filter):
    """Return a filter's value: the triangle's, or R. Keys' cubic with a = -1/2."""
    x = abs(x)
    if filter == 1:
        return max(0.0, 1.0 - x)
    if x < 1:
        return (1.5 * x - 2.5) * x * x + 1
    return ((-0.5 * x + 2.5) * x - 4) * x + 2 if x < 2 else 0.0


@fastjit
def _put(result, x, value, scale, shift):
    """Write a value; scale and shift it if the result is float."""
    if result.itemsize == 1:
        result[x] = value
    else:
        result[x] = np.float32(value) * scale + shift
