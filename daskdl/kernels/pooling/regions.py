"""Maxima over boxes of images, each with its bounds, and weighted sums of two places of an axis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]


def maxima(
    x: Array, images: NDArray[np.int64], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> tuple[Array, NDArray[np.int64]]:
    """Return the largest number of each box and channel, (R, h, w, C), and its place in ``x``.

    ``images`` (R,) has each region's image; ``rows`` (R, h, 2) and ``columns`` (R, w, 2) have start
    and stop of its boxes. A place is an index of the flat ``x``, the first of equal maxima. An
    empty box has the maximum 0 and the place -1.
    """
    shape = (len(images), rows.shape[1], columns.shape[1], x.shape[3])
    result, places = np.zeros(shape, x.dtype), np.full(shape, -1, np.int64)
    _maxima(flat(x), x.shape[1], x.shape[2], images, rows, columns, result, places)
    return result, places


def gradient(dy: Array, places: NDArray[np.int64], shape: tuple[int, ...]) -> Array:
    """Return the gradient to ``x`` of this shape, added in the order of the regions."""
    dx = np.zeros(shape, dy.dtype)
    _scatter(flat(dy), places.reshape(-1), dx.reshape(-1))
    return dx


def mixed(x: Array, places: Array, weights: Array) -> Array:
    """Return weighted sums of two places, (lead, m, rest), of x (lead, n, rest); NaN if not finite.

    ``places`` (m, 2) and ``weights`` (m, 2), in x's dtype; a second place of weight 0 is not read.
    """
    result = np.empty((len(x), len(places), x.shape[2]), x.dtype)
    least = 1 + 32_768 // max(1, x.shape[2])
    over_range(_mixed, result.shape[0] * len(places), least, x, places, weights, result)
    return result


@jit
def _mixed(x, places, weights, result, which, start, stop):
    for item in range(start, stop):
        i, j = item // len(places), item % len(places)
        one, other = weights[j]
        first, last = places[j]
        for c in range(x.shape[2]):
            value = one * x[i, first, c]
            if other != 0:
                value += other * x[i, last, c]
            result[i, j, c] = value + (value - value)


@jit
def _maxima(x, height, width, images, rows, columns, result, places):
    channels = result.shape[3]
    for r in range(images.size):
        for i in range(rows.shape[1]):
            for j in range(columns.shape[1]):
                best, place = result[r, i, j], places[r, i, j]
                for row in range(rows[r, i, 0], rows[r, i, 1]):
                    for column in range(columns[r, j, 0], columns[r, j, 1]):
                        start = ((images[r] * height + row) * width + column) * channels
                        for c in range(channels):
                            value = x[start + c]
                            if place[c] < 0 or value > best[c] or value != value:
                                best[c] = value
                                place[c] = start + c


@jit
def _scatter(dy, places, dx):
    for k in range(dy.size):
        if places[k] >= 0:
            dx[places[k]] += dy[k]
