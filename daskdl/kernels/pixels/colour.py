"""Channels of images mixed by a matrix, a whole batch in one call; means of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import carray
from numpy.typing import NDArray

from daskdl.kernels.pixels.interpolation import PIXELS, addresses, mix_levels, pointer
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]
Images = Sequence[Array] | Array


def mix(sources: Images, matrices: Array, results: Images, white: float) -> None:
    """Write ``matrix @ (channels, 1)`` of each pixel, limited to 0 and white, rounded if uint8.

    Sources are uint8 or float32 (H, W, C), a sequence or one array, C-contiguous. Results are like
    the sources, or the sources themselves; matrices (N, C, C + 1).
    """
    table = _places(sources, results)
    least = grain.least(grain.SUM, sources[0].size)
    levels = sources[0].dtype == np.uint8
    over_range(
        _mix, len(sources), least, table, np.ascontiguousarray(matrices, np.float32),
        np.float32(white), levels,
    )  # fmt: skip


def channel_means(sources: Images) -> NDArray[np.float64]:
    """Return the mean of each channel (N, C) of C-contiguous images, as :func:`mix` takes them."""
    means = np.zeros((len(sources), sources[0].shape[2]))
    least = grain.least(grain.SUM, sources[0].size)
    levels = sources[0].dtype == np.uint8
    over_range(_means, len(sources), least, _places(sources, sources), means, levels)
    return means


def _places(sources: Images, results: Images) -> NDArray[np.int64]:
    n_pixels = [s.shape[0] * s.shape[1] for s in sources]
    return np.stack([addresses(sources), addresses(results), np.array(n_pixels, np.int64)], 1)


@fastjit
def _mix(places, matrices, white, levels, which, start, stop):
    for i in range(start, stop):
        n = np.uint64(places[i, 2])
        if levels:
            source = carray(pointer(places[i, 0], np.uint8(0)), (1,))
            result = carray(pointer(places[i, 1], np.uint8(0)), (1,))
            _mix_one(source, result, n, matrices[i], white, np.float32(0.5))
        else:
            numbers = carray(pointer(places[i, 0], np.float32(0)), (1,))
            others = carray(pointer(places[i, 1], np.float32(0)), (1,))
            _mix_one(numbers, others, n, matrices[i], white, np.float32(0))


@fastjit
def _mix_one(source, result, n, m, white, half):
    channels = np.uint64(m.shape[0])
    if channels == 3:
        aa, ab, ac, a = m[0, 0], m[0, 1], m[0, 2], m[0, 3] + half
        ba, bb, bc, b = m[1, 0], m[1, 1], m[1, 2], m[1, 3] + half
        ca, cb, cc, c = m[2, 0], m[2, 1], m[2, 2], m[2, 3] + half
        most, zero, one, two, three = (
            white + half, np.float32(0), np.uint64(1), np.uint64(2), np.uint64(3)
        )  # fmt: skip
        done, block = np.uint64(0), np.uint64(PIXELS)
        if result.itemsize == 1:
            mixture = aa, ab, ac, a, ba, bb, bc, b, ca, cb, cc, c
            while done + block <= n:
                mix_levels(source, three * done, result, three * done, mixture, most)
                done += block
        for p in range(done, n):
            k = three * np.uint64(p)
            x = np.float32(source[k])
            y = np.float32(source[k + one])
            z = np.float32(source[k + two])
            _put(result, k, min(max(aa * x + ab * y + ac * z + a, zero), most))
            _put(result, k + one, min(max(ba * x + bb * y + bc * z + b, zero), most))
            _put(result, k + two, min(max(ca * x + cb * y + cc * z + c, zero), most))
        return
    pixel = np.empty(m.shape[0], np.float32)
    for p in range(n):
        k = channels * np.uint64(p)
        for to in range(m.shape[0]):
            value = m[to, m.shape[0]] + half
            for of in range(m.shape[0]):
                value += m[to, of] * np.float32(source[k + np.uint64(of)])
            pixel[to] = min(max(value, np.float32(0)), white + half)
        for to in range(m.shape[0]):
            result[k + np.uint64(to)] = pixel[to]


@fastjit
def _put(result, k, value):
    if result.itemsize == 1:
        result[k] = np.uint8(np.int32(value))  # processors convert floats to integers of 32 bits
    else:
        result[k] = value


@fastjit
def _means(places, means, levels, which, start, stop):
    for i in range(start, stop):
        n = np.uint64(places[i, 2])
        if levels:
            source = carray(pointer(places[i, 0], np.uint8(0)), (1,))
            _add_up(source, n, means[i], np.uint64(0))
        else:
            numbers = carray(pointer(places[i, 0], np.float32(0)), (1,))
            _add_up(numbers, n, means[i], 0.0)


@fastjit
def _add_up(source, n, means, zero):
    channels = np.uint64(len(means))
    if channels == 3:
        a, b, c = zero, zero, zero
        for p in range(n):
            k = np.uint64(3) * np.uint64(p)
            a += source[k]
            b += source[k + np.uint64(1)]
            c += source[k + np.uint64(2)]
        means[0], means[1], means[2] = a / n, b / n, c / n
        return
    for c in range(len(means)):
        total = zero
        for p in range(n):
            total += source[channels * np.uint64(p) + np.uint64(c)]
        means[c] = total / n
