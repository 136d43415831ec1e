"""Bands of scales: a field as a sum of octaves, each on a grid as coarse as its scale allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows

Float = NDArray[np.float32]

#: The coarsest grid has no side of fewer pixels than this.
SMALLEST = 6


@dataclass(frozen=True)
class Pyramid:
    """Laplacian pyramid of a field with missing pixels.

    Attributes
    ----------
    bands : list of ndarray, (y_k, x_k) float32
        Differences between a field and the next coarser one, from the finest octave on; last the
        coarsest field itself. Zero where nothing is known.
    weights : list of ndarray, (y_k, x_k) float32
        Share from 0 to 1 of each pixel that is known.

    References
    ----------
    Burt and Adelson, "The Laplacian pyramid as a compact image code", IEEE Trans. Commun. 31
    (1983), 532-540; its averages are normalised here as in Knutsson and Westin, "Normalized and
    differential convolution", CVPR 1993.
    """

    bands: list[Float]
    weights: list[Float]


def decompose(field: Float, levels: int | None = None) -> Pyramid:
    """Take a field (y, x) apart; NaN is missing and says nothing about its neighbours.

    Parameters
    ----------
    field : ndarray, (y, x) float32
    levels : int, optional
        Number of bands; by default as many as leave the coarsest `SMALLEST` pixels wide.
    """
    weight = np.isfinite(field).astype(np.float32)
    field = np.where(weight > 0, field, 0).astype(np.float32)
    bands, weights = [], [weight]
    count = levels_of(field.shape) if levels is None else levels
    for _ in range(count - 1):
        coarse, coarse_weight = shrink(field, weight)
        band = field - grow(coarse, coarse_weight, field.shape)
        band *= weight > 0
        bands.append(band)
        field, weight = coarse, coarse_weight
        weights.append(weight)
    bands.append(field)
    return Pyramid(bands, weights)


def compose(bands: list[Float], weights: list[Float]) -> Float:
    """Put the bands together again: what `decompose` took apart, up to rounding."""
    field = bands[-1]
    for k in range(len(bands) - 2, -1, -1):
        field = grow(field, weights[k + 1], bands[k].shape)
        field += bands[k]
    return field


def levels_of(shape: tuple[int, ...]) -> int:
    """Return the number of octaves of a grid."""
    count, side = 1, min(shape)
    while (side + 1) // 2 >= SMALLEST:
        count, side = count + 1, (side + 1) // 2
    return count


def shrink(field: Float, weight: Float) -> tuple[Float, Float]:
    """Halve a grid: Gaussian means of what is known, and the share of it."""
    height, width = field.shape
    shape = ((height + 1) // 2, (width + 1) // 2)
    out, share = np.empty(shape, np.float32), np.empty(shape, np.float32)
    rows = np.arange(shape[0])
    over_rows(_shrink, (out, share, rows), 64, field, weight)
    return out, share


def grow(field: Float, weight: Float, shape: tuple[int, ...]) -> Float:
    """Double a grid to a shape, smoothly, from those pixels alone of which something is known."""
    out = np.empty(shape, np.float32)
    over_rows(_grow, (out, np.arange(shape[0])), 64, field, weight)
    return out


@jit
def _shrink(out, share, rows, field, weight):
    height, width = field.shape
    wide = out.shape[1]
    # Binomial weights of order 8: a Gaussian wide enough that halving leaves no blocks behind.
    taps = np.array([1, 8, 28, 56, 70, 56, 28, 8, 1], np.float32)
    total, known = np.empty(width, np.float32), np.empty(width, np.float32)
    for k in range(len(rows)):
        total[:] = 0
        known[:] = 0
        reach = np.float32(0)
        for d in range(9):
            i = 2 * rows[k] + d - 4
            if 0 <= i < height:
                reach += taps[d]
                for j in range(width):
                    w = taps[d] * weight[i, j]
                    known[j] += w
                    total[j] += w * field[i, j]
        for j in range(wide):
            value, sum_known, across = np.float32(0), np.float32(0), np.float32(0)
            for d in range(9):
                column = 2 * j + d - 4
                if 0 <= column < width:
                    across += taps[d]
                    sum_known += taps[d] * known[column]
                    value += taps[d] * total[column]
            out[k, j] = value / sum_known if sum_known > 0 else np.float32(0)
            share[k, j] = sum_known / (reach * across)


@jit
def _grow(out, rows, field, weight):
    height, width = field.shape
    wide = out.shape[1]
    total, known = np.empty(width, np.float32), np.empty(width, np.float32)
    for k in range(len(rows)):
        total[:] = 0
        known[:] = 0
        middle = rows[k] // 2
        odd = rows[k] % 2
        for d in range(-1, 2):
            i = middle + d
            # Even rows lie on a coarse one (1 6 1), odd ones half-way between two (4 4).
            tap = np.float32((4 if d >= 0 else 0) if odd else (6 if d == 0 else 1))
            if 0 <= i < height and tap > 0:
                for j in range(width):
                    if weight[i, j] > 0:
                        known[j] += tap
                        total[j] += tap * field[i, j]
        for j in range(wide):
            middle_j, odd_j = j // 2, j % 2
            value, sum_known = np.float32(0), np.float32(0)
            for d in range(-1, 2):
                column = middle_j + d
                tap = np.float32((4 if d >= 0 else 0) if odd_j else (6 if d == 0 else 1))
                if 0 <= column < width and tap > 0:
                    value += tap * total[column]
                    sum_known += tap * known[column]
            out[k, j] = value / sum_known if sum_known > 0 else np.float32(0)
