"""Maxima over boxes of images, each box with bounds of its own: regions, and shares of an image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.passes import flat

Array = NDArray[Any]


def maxima(
    x: Array, images: NDArray[np.int64], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> tuple[Array, NDArray[np.int64]]:
    """Return the largest number of each box and channel, and where in ``x`` it lies.

    Parameters
    ----------
    x : array (N, H, W, C)
    images : (R,)
        The image of each region.
    rows : (R, h, 2)
        First row, and the one behind the last, of each of a region's boxes.
    columns : (R, w, 2)

    Returns
    -------
    maxima : array (R, h, w, C)
        0 of an empty box.
    places : int64 array (R, h, w, C)
        Positions in the flat ``x``, -1 of an empty box; of equals the first.
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
