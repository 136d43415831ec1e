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


def resample(blocks: Float, side: float, shape: tuple[int, int], new_side: float) -> Float:
    """Interpolate (part, y, x) to ``shape`` blocks of another side, from the same corner."""
    return enlarge(blocks, shape, side / new_side)


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
