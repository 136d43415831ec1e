"""Images under affine maps, interpolated linearly, a whole batch in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import carray
from numpy.typing import NDArray

from daskdl.kernels.pixels.interpolation import blend_levels, pointer
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]


def warp(sources: Sequence[Array], inverses: Array, results: Sequence[Array], fill: Array) -> None:
    """Write each result's pixels, interpolated where an affine map leads in the source.

    Inverses (N, 2, 3) map (column, row, 1) of a pixel's centre in the result to (column, row) in
    the source; the first pixel's centre is (0, 0). Sources and results are uint8 or float32 (H, W,
    C), C-contiguous. Outside the sources is ``fill`` (C,); outermost pixels fade to it within one
    pixel.
    """
    places = np.array(
        [
            (s.ctypes.data, r.ctypes.data, s.shape[0], s.shape[1], r.shape[0], r.shape[1])
            for s, r in zip(sources, results, strict=True)
        ],
        np.int64,
    )
    least = grain.least(grain.WARP, results[0].size)
    levels = sources[0].dtype == np.uint8
    over_range(
        _warp, len(sources), least, places, np.ascontiguousarray(inverses, np.float64),
        np.ascontiguousarray(fill, np.float32), levels,
    )  # fmt: skip


@fastjit
def _warp(places, inverses, fill, levels, which, start, stop):
    for i in range(start, stop):
        if levels:
            source = carray(pointer(places[i, 0], np.uint8(0)), (1,))
            result = carray(pointer(places[i, 1], np.uint8(0)), (1,))
            _warp_one(source, result, places[i], inverses[i], fill, np.float32(0.5))
        else:
            numbers = carray(pointer(places[i, 0], np.float32(0)), (1,))
            others = carray(pointer(places[i, 1], np.float32(0)), (1,))
            _warp_one(numbers, others, places[i], inverses[i], fill, np.float32(0))


@fastjit
def _warp_one(source, result, sizes, m, fill, half):
    height, width, rows, columns = sizes[2], sizes[3], sizes[4], sizes[5]
    channels = len(fill)
    behind, three = np.uint64(rows * columns * channels), np.uint64(3)
    for i in range(rows):
        for j in range(columns):
            target = np.uint64((i * columns + j) * channels)
            x = m[0, 0] * j + m[0, 1] * i + m[0, 2]
            y = m[1, 0] * j + m[1, 1] * i + m[1, 2]
            # A millionth of a pixel counts as rounding, so that a quarter turn stays exact.
            x0, y0 = int(np.floor(x + 1e-6)), int(np.floor(y + 1e-6))
            if x0 < -1 or y0 < -1 or x0 >= width or y0 >= height:
                for c in range(channels):
                    result[target + np.uint64(c)] = fill[c] + half
                continue
            u, v = np.float32(max(x - x0, 0.0)), np.float32(max(y - y0, 0.0))
            one = np.float32(1)
            w00, w01 = (one - v) * (one - u), (one - v) * u
            w10, w11 = v * (one - u), v * u
            here = (y0 * width + x0) * channels
            if x0 >= 0 and y0 >= 0 and x0 + 1 < width and y0 + 1 < height:
                a, b = np.uint64(here), np.uint64(here + width * channels)
                step = np.uint64(channels)
                inner = y0 + 2 < height or x0 + 2 < width  # a number is read after the pixels
                if channels == 3 and result.itemsize == 1 and inner and target + three < behind:
                    weights = w00, w01, w10, w11, half
                    blend_levels(source, a, b, weights, result, target)
                    continue
                for n in range(channels):
                    k = np.uint64(n)
                    result[target + k] = (
                        w00 * source[a + k] + w01 * source[a + step + k]
                        + w10 * source[b + k] + w11 * source[b + step + k] + half
                    )  # fmt: skip
                continue
            left, right, upper, lower = x0 >= 0, x0 + 1 < width, y0 >= 0, y0 + 1 < height
            for c in range(channels):
                value = fill[c] * (
                    one - w00 * (left and upper) - w01 * (right and upper)
                    - w10 * (left and lower) - w11 * (right and lower)
                )  # fmt: skip
                if left and upper:
                    value += w00 * source[np.uint64(here + c)]
                if right and upper:
                    value += w01 * source[np.uint64(here + c + channels)]
                if left and lower:
                    value += w10 * source[np.uint64(here + c + width * channels)]
                if right and lower:
                    value += w11 * source[np.uint64(here + c + (width + 1) * channels)]
                result[target + np.uint64(c)] = value + half
