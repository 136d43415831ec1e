"""Fields on coarser and finer grids: means of blocks, and linear interpolation between them."""

from __future__ import annotations

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
    """Return means of what is known of each block, 0 where nothing is, and the share known.

    Parameters
    ----------
    field : ndarray, (y, x) float32
        NaN is missing.
    side : int
        Pixels along the side of a block; the last row and column of blocks may be narrower.
    """
    shape = (-(-field.shape[0] // side), -(-field.shape[1] // side))
    means, share = np.empty(shape, np.float32), np.empty(shape, np.float32)
    field = np.ascontiguousarray(field, np.float32)
    over_rows(_known_means, (means, share, np.arange(shape[0])), 16, field, side)
    return means, share


def enlarge(blocks: Float, shape: tuple[int, ...], side: float) -> Float:
    """Interpolate values at block centres (part, y, x) linearly to pixels of ``shape``, ends held.

    Parameters
    ----------
    blocks : ndarray, (part, block_y, block_x) float32
    shape : (int, int)
        Pixels along y and x.
    side : float
        Pixels along the side of a block.
    """
    out = np.empty((len(blocks), *shape), np.float32)
    blocks = np.ascontiguousarray(blocks, np.float32)
    for part, values in zip(out, blocks, strict=True):
        over_rows(_enlarge, (part, np.arange(shape[0])), 64, values, float(side))
    return out


def softened(blocks: Float) -> Float:
    """Return means of blocks (part, y, x) and their neighbours, weighted 1, 2 and 1 along y and x.

    Linear interpolation of blocks that differ from neighbour to neighbour shows their grid: it has
    a kink at each centre. Of softened ones it has hardly any.
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
