"""Fields on coarser grids: means of blocks, interpolation between them, shares around pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows

Float = NDArray[np.float32]


def block_means(field: Float, side: int) -> Float:
    """Return means over blocks of ``side`` x ``side`` pixels; pixels beyond the end count as 0."""
    if side == 1:
        return field
    height, width = field.shape
    padded = np.pad(field, ((0, -height % side), (0, -width % side)))
    blocks = padded.reshape(padded.shape[0] // side, side, padded.shape[1] // side, side)
    return blocks.mean((1, 3), dtype=np.float32)


def known_means(field: Float, side: int) -> tuple[Float, Float]:
    """Return the mean of each block's known pixels, 0 without any, and the known share.

    - ``field`` (y, x): NaN is missing.
    - ``side``: pixels along the side of a block; the last row and column of blocks may be narrower.
    """
    shape = (-(-field.shape[0] // side), -(-field.shape[1] // side))
    means, share = np.empty(shape, np.float32), np.empty(shape, np.float32)
    field = np.ascontiguousarray(field, np.float32)
    over_rows(_known_means, (means, share, np.arange(shape[0])), 16, field, side)
    return means, share


def enlarge(blocks: Float, shape: tuple[int, ...], side: float) -> Float:
    """Interpolate block centres (part, y, x) linearly to pixels of ``shape``; borders are constant.

    - ``blocks`` (part, block_y, block_x).
    - ``shape``: pixels along y and x.
    - ``side``: pixels along the side of a block.
    """
    out = np.empty((len(blocks), *shape), np.float32)
    blocks = np.ascontiguousarray(blocks, np.float32)
    for part, values in zip(out, blocks, strict=True):
        over_rows(_enlarge, (part, np.arange(shape[0])), 64, values, float(side))
    return out


def softened(blocks: Float) -> Float:
    """Return means of blocks (part, y, x) and their neighbours, weighted 1, 2 and 1 along y and x.

    Linear interpolation has a kink at each block's centre, so that the grid of blocks shows. After
    softening it hardly does.
    """
    for axis in (1, 2):
        at, last = np.arange(blocks.shape[axis]), blocks.shape[axis] - 1
        before, after = (np.take(blocks, np.clip(at + by, 0, last), axis) for by in (-1, 1))
        blocks = (before + blocks * np.float32(2) + after) / np.float32(4)
    return blocks


def resample(blocks: Float, side: float, shape: tuple[int, int], new_side: float) -> Float:
    """Interpolate (part, y, x) to ``shape`` blocks of another side, from the same corner."""
    return enlarge(blocks, shape, side / new_side)


@jit
def _known_means(means, share, rows, field, side):
    height, width = field.shape
    for k in range(len(rows)):
        first = rows[k] * side
        last = min(first + side, height)
        for j in range(means.shape[1]):
            left, right = j * side, min(j * side + side, width)
            total, count = np.float32(0), 0
            for i in range(first, last):
                for column in range(left, right):
                    value = field[i, column]
                    if not np.isnan(value):
                        total += value
                        count += 1
            means[k, j] = total / np.float32(count) if count else np.float32(0)
            share[k, j] = np.float32(count) / np.float32((last - first) * (right - left))


@jit
def _enlarge(out, rows, values, side):
    height, width = values.shape
    row = np.empty(width, np.float32)
    for k in range(len(rows)):
        y = min(max((rows[k] + 0.5) / side - 0.5, 0.0), height - 1.0)
        i = min(int(y), max(height - 2, 0))
        part = np.float32(y - i)
        for j in range(width):
            lower = values[min(i + 1, height - 1), j]
            row[j] = values[i, j] + part * (lower - values[i, j])
        for column in range(out.shape[1]):
            x = min(max((column + 0.5) / side - 0.5, 0.0), width - 1.0)
            j = min(int(x), max(width - 2, 0))
            out[k, column] = row[j] + np.float32(x - j) * (row[min(j + 1, width - 1)] - row[j])


#: Side in km of the cells in which pixels are counted.
CELL_KM = 4.0
#: Sides in km of the squares of both neighbourhoods, in which pixels are added up, and sums again:
#: weights fall off with the distance, where a square's edges and corners would show.
NEAR_KM, WIDE_KM = 12.0, 28.0
#: Added to a share and to the rest of it, so that none and all have a finite logit.
LEAST = 0.02


@dataclass(frozen=True)
class Surroundings:
    """Logits of the shares of known pixels that reach each threshold, on cells of `CELL_KM`."""

    #: Of `NEAR_KM` and `WIDE_KM`, around each cell; where nothing is known, as if dry, (threshold,
    #: cell_y, cell_x) float32.
    near: Float
    wide: Float
    side: int  #: Pixels along the side of a cell.

    @classmethod
    def of(cls, rain: Float, thresholds: Sequence[float], spacing_km: float) -> Surroundings:
        """Count the pixels of a field (y, x) in mm h-1, NaN where missing.

        - ``thresholds``: in mm h-1, increasing.
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
    """Return logits of shares in squares of cells that reach ``reach`` cells to each side.

    - ``planes`` (1 + threshold, cell_y, cell_x): pixels that are known, and that reach each
      threshold.
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
    """Add up the (2 reach + 1) x (2 reach + 1) cells around each cell, within the grid."""
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
