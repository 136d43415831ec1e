"""Matching: a field's pixels get, region by region, the distribution of rain rates of another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows

Float = NDArray[np.float32]

#: Side in km of the windows whose distributions are matched; each reaches half into the next.
WINDOW_KM = 320.0
#: Classes of a window's histograms, of the field's values and of the logarithm of rain rates.
CLASSES, RATES = 1024, 2048
#: Rain rates in mm h-1 that the histogram tells apart; below it is dry, above all are the same.
LEAST, MOST = 0.01, 200.0
#: Added to rain rates in mm h-1 before their logarithms are interpolated, so that 0 has one.
SOFT = 0.02


def matched(field: Float, reference: Float, spacing_km: float) -> Float:
    """Give pixels the rain rates that another field has at their ranks, region by region.

    Within one window for the whole grid, storms whose small scales have faded would hand their
    strongest rates to larger ones a thousand kilometres away.

    Parameters
    ----------
    field : ndarray, (y, x) float32
        Its ranks within a window decide; NaN is missing.
    reference : ndarray, (y, x) float32
        Rain rate in mm h-1 whose distribution is wanted.
    spacing_km : float
        Of the pixels.

    Returns
    -------
    ndarray, (y, x) float32
        Rain rate in mm h-1; NaN where ``field`` or ``reference`` is. Pixels between the middles of
        four windows have the mean of what these give them, by distance, in the logarithm.

    References
    ----------
    Ebert, "Ability of a poor man's ensemble to predict the probability and distribution of
    precipitation", Monthly Weather Review 129 (2001), 2461-2480, matches whole fields; windows and
    their interpolation are those of Zuiderveld, "Contrast limited adaptive histogram equalization",
    Graphics Gems IV (1994), 474-485.
    """
    out = np.full_like(field, np.nan)
    known = np.isfinite(field) & np.isfinite(reference)
    if not known.any():
        return out
    values = field[known]
    low, high = values.min(), values.max()
    per_class = np.float32(CLASSES / max(high - low, 1e-6))
    half = WINDOW_KM / 2 / spacing_km
    blocks = [max(1, round(n / half)) for n in field.shape]
    counts = np.zeros((*blocks, CLASSES), np.int32)
    rates = np.zeros((*blocks, RATES), np.int32)
    over_rows(
        _count, (counts, rates, np.arange(blocks[0])), 1, field, reference, blocks[0], low,
        per_class,
    )  # fmt: skip
    tables = _tables(_windows(counts), _windows(rates))
    over_rows(
        _look_up, (out, field, reference, np.arange(len(field))), 64, tables, len(field), low,
        per_class,
    )  # fmt: skip
    return out


def _windows(counts: NDArray[np.int32]) -> NDArray[np.int64]:
    """Add up histograms (block_y, block_x, class) of the blocks around each of their corners."""
    made = np.zeros((counts.shape[0] + 1, counts.shape[1] + 1, counts.shape[2]), np.int64)
    for rows in (slice(1, None), slice(None, -1)):
        for columns in (slice(1, None), slice(None, -1)):
            made[rows, columns] += counts
    return made


def _tables(counts: NDArray[np.int64], rates: NDArray[np.int64]) -> Float:
    """Return log(rate + SOFT) at the edges of each window's classes, (y, x, CLASSES + 1)."""
    edges = np.exp(np.linspace(np.log(LEAST), np.log(MOST), RATES))
    edges[0] = 0  # as far as it is dry
    made = np.empty((*counts.shape[:2], CLASSES + 1), np.float32)
    rank = np.zeros(CLASSES + 1)
    for table, own, of_rates in zip(
        made.reshape(-1, CLASSES + 1), counts.reshape(-1, CLASSES), rates.reshape(-1, RATES),
        strict=True,
    ):  # fmt: skip
        np.cumsum(own, out=rank[1:])
        reached = np.cumsum(of_rates)
        stop = int(np.searchsorted(reached, reached[-1])) + 1  # no class above has a pixel
        table[:] = np.log(np.interp(rank, reached[:stop], edges[:stop]) + SOFT)
    return made


@jit
def _count(counts, rates, rows, field, reference, down, low, per_class):
    """Count the pixels of rows of blocks by their value, and by the logarithm of their rate."""
    height, width = field.shape
    across, last = counts.shape[1], counts.shape[2] - 1
    scale = np.float32((RATES - 1) / np.log(MOST / LEAST))
    for n in range(len(rows)):
        start, stop = -(-rows[n] * height // down), -(-(rows[n] + 1) * height // down)
        for i in range(start, stop):
            for j in range(width):
                if np.isfinite(field[i, j]) and np.isfinite(reference[i, j]):
                    block = j * across // width
                    counts[n, block, min(int((field[i, j] - low) * per_class), last)] += 1
                    rate, k = reference[i, j], 0
                    if rate > LEAST:
                        k = min(1 + int(np.log(rate / np.float32(LEAST)) * scale), RATES - 1)
                    rates[n, block, k] += 1


@jit
def _look_up(out, field, reference, rows, tables, height, low, per_class):
    """Interpolate the rate at each pixel's value between the windows around it."""
    down, across, last = tables.shape[0] - 1, tables.shape[1] - 1, tables.shape[2] - 2
    width = field.shape[1]
    for i in range(field.shape[0]):
        y = (rows[i] + 0.5) * down / height
        above = min(int(y), down - 1)
        lower = np.float32(y - above)
        for j in range(width):
            if not (np.isfinite(field[i, j]) and np.isfinite(reference[i, j])):
                continue
            x = (j + 0.5) * across / width
            left = min(int(x), across - 1)
            right = np.float32(x - left)
            at = (field[i, j] - low) * per_class
            k = min(int(at), last)
            part = at - np.float32(k)
            value = np.float32(0)
            for down_one, weight in ((0, np.float32(1) - lower), (1, lower)):
                for right_one, share in ((0, np.float32(1) - right), (1, right)):
                    table = tables[above + down_one, left + right_one]
                    value += weight * share * (table[k] + part * (table[k + 1] - table[k]))
            rate = np.exp(value) - np.float32(SOFT)
            out[i, j] = rate if rate > np.float32(0.001) else np.float32(0)
