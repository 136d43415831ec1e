"""Surroundings: the share of pixels near another one that reach each threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows
from nowcast.lagrangian.blocks import enlarge

Float = NDArray[np.float32]

#: Side in km of the cells in which pixels are counted.
CELL_KM = 4.0
#: Sides in km of the squares of both neighbourhoods, in which pixels are added up, and sums again:
#: weights fall off with the distance, where a square's edges and corners would show.
NEAR_KM, WIDE_KM = 12.0, 28.0
#: Added to a share and to the rest of it, so that none and all have a finite logit.
LEAST = 0.02


@dataclass(frozen=True)
class Surroundings:
    """Logits of the shares of known pixels that reach each threshold, on cells of `CELL_KM`.

    Attributes
    ----------
    near, wide : ndarray, (threshold, cell_y, cell_x) float32
        Of `NEAR_KM` and `WIDE_KM`, around each cell; where nothing is known, as if dry.
    side : int
        Pixels along the side of a cell.
    """

    near: Float
    wide: Float
    side: int

    @classmethod
    def of(cls, rain: Float, thresholds: Sequence[float], spacing_km: float) -> Surroundings:
        """Count the pixels of a field (y, x) in mm h-1, NaN where missing.

        Parameters
        ----------
        thresholds : sequence of float
            In mm h-1, increasing.
        spacing_km : float
            Of the pixels.
        """
        side = max(1, round(CELL_KM / spacing_km))
        height, width = (-(-n // side) for n in rain.shape)
        counts = np.zeros((height, width, len(thresholds) + 1), np.int32)
        levels = np.asarray(thresholds, np.float32)
        rain = np.ascontiguousarray(rain, np.float32)
        over_rows(_count, (counts, np.arange(height)), 16, rain, levels, side)
        planes = np.ascontiguousarray(np.moveaxis(counts, -1, 0))
        near, wide = (
            _logits(planes, round((km / (side * spacing_km) - 1) / 2)) for km in (NEAR_KM, WIDE_KM)
        )
        return cls(near, wide, side)

    def at_pixels(self, shape: tuple[int, ...]) -> tuple[Float, Float]:
        """Return both at the pixels of a grid (threshold, y, x), interpolated between cells."""
        return enlarge(self.near, shape, self.side), enlarge(self.wide, shape, self.side)


def _logits(planes: NDArray[np.int32], reach: int) -> Float:
    """Return logits of shares in squares of squares that reach so many cells to each side of one.

    Parameters
    ----------
    planes : ndarray, (1 + threshold, cell_y, cell_x) int32
        Pixels that are known, and that reach each threshold.
    """
    once, sums = np.empty_like(planes), np.empty_like(planes)
    over_rows(_squares, (once, planes), 1, max(reach, 0))
    over_rows(_squares, (sums, once), 1, max(reach, 0))
    out = np.empty((len(planes) - 1, *planes.shape[1:]), np.float32)
    over_rows(_logit, (out, sums[1:]), 1, sums[0], np.float32(LEAST))
    return out


@jit
def _count(counts, rows, field, levels, side):
    height, width = field.shape
    for n in range(len(rows)):
        for i in range(rows[n] * side, min(rows[n] * side + side, height)):
            for j in range(width):
                value = field[i, j]
                if not np.isnan(value):
                    cell = j // side
                    counts[n, cell, 0] += 1
                    for k in range(len(levels)):
                        if value >= levels[k]:
                            counts[n, cell, k + 1] += 1


@jit
def _squares(sums, planes, reach):
    """Add up (2 reach + 1) x (2 reach + 1) cells around each, as far as there are any."""
    height, width = planes.shape[1:]
    across = np.empty((height, width), np.int32)
    column = np.empty(width, np.int32)
    for n in range(len(planes)):
        for i in range(height):
            total = np.int32(0)
            for j in range(min(reach, width)):
                total += planes[n, i, j]
            for j in range(width):
                if j + reach < width:
                    total += planes[n, i, j + reach]
                if j > reach:
                    total -= planes[n, i, j - reach - 1]
                across[i, j] = total
        for j in range(width):
            column[j] = 0
        for i in range(min(reach, height)):
            for j in range(width):
                column[j] += across[i, j]
        for i in range(height):
            for j in range(width):
                if i + reach < height:
                    column[j] += across[i + reach, j]
                if i > reach:
                    column[j] -= across[i - reach - 1, j]
                sums[n, i, j] = column[j]


@jit
def _logit(out, reached, known, least):
    one = np.float32(1)
    for k in range(len(out)):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                share = np.float32(reached[k, i, j]) / np.float32(max(known[i, j], 1))
                out[k, i, j] = np.log((share + least) / (one - share + least))
