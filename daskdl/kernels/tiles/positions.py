"""Positions: the windows of a convolution as one line, so that tiles take 16 neighbours at a time.

An image's rows lie one after the other. Zeros between rows, and rows of zeros between images, keep
each tap of a window at a fixed distance in positions, so that no window has to be gathered. The
results at the zeros' positions are not used. With strides an image is cut into phases: each has
every stride-th row and column.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class Positions(NamedTuple):
    """Places of the windows of a batch of images, and of their taps; arrays are int64.

    ``phases`` (phases, 4) are each one's first row and column, and numbers of rows and columns.
    ``taps`` (taps, 2) are a tap's phase, and its distance from the window in positions; ``low`` and
    ``high`` are the least and the greatest distance. ``sizes`` (8,) are images; rows and columns of
    positions of each; strides down and across; rows and columns of results; :attr:`length`.
    """

    phases: Indices
    taps: Indices
    sizes: Indices
    low: int
    high: int

    @property
    def length(self) -> int:
        """The number of positions up to the last result's."""
        return int(self.sizes[7])


def positions_of(
    shape: tuple[int, ...], offsets: Indices, strides: tuple[int, int], results: tuple[int, int]
) -> Positions:
    """Return the positions of (rows, columns) windows on each image of a shape (N, H, W, ...).

    ``offsets`` (taps, 2) are rows and columns from a window's place to each of its taps.
    """
    return _positions(shape[0], (shape[1], shape[2]), _key(offsets), strides, results)


def _key(offsets: Indices) -> tuple[tuple[int, int], ...]:
    return tuple((row, column) for row, column in offsets.tolist())


@lru_cache(512)
def _positions(
    images: int,
    size: tuple[int, int],
    offsets: tuple[tuple[int, int], ...],
    strides: tuple[int, int],
    results: tuple[int, int],
) -> Positions:
    distance, start = np.divmod(np.array(offsets, np.int64).reshape(-1, 2), strides)
    starts = np.unique(start, axis=0)
    have = np.maximum(0, -(-(np.array(size) - starts) // strides))
    phases = np.concatenate([starts, have], axis=1)
    first, last, most = distance.min(0), distance.max(0), have.max(0)
    zeros = np.maximum(0, np.maximum(-first, np.array(results) + last - most))
    rows, columns = np.maximum(most + zeros, results).tolist()
    phase = [int(np.flatnonzero((starts == one).all(1))[0]) for one in start]
    behind = distance[:, 0] * columns + distance[:, 1]
    taps = np.stack([phase, behind], axis=1).astype(np.int64)
    count = ((images - 1) * rows + results[0] - 1) * columns + results[1]
    sizes = np.array([images, rows, columns, *strides, *results, count], np.int64)
    return Positions(phases, taps, sizes, int(taps[:, 1].min()), int(taps[:, 1].max()))
