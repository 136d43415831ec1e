"""Regional ranks: a pixel's rank among those of its region, as a rank of the whole grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows

Float = NDArray[np.float32]

#: Side in km of the windows in which ranks are taken; each reaches half into the next.
WINDOW_KM = 320.0
#: Classes of a window's histograms, of the field's values and of the logarithm of rain rates.
CLASSES, RATES = 1024, 2048
#: Rain rates in mm h-1 that the histogram tells apart; below it is dry, above all are the same.
LEAST, MOST = 0.01, 200.0


def regional_ranks(field: Float, rain: Float, spacing_km: float) -> Float:
    """Return the ranks in ``rain`` of the rates that ``rain`` has, in a region, at the field's.

    At these ranks, `nowcast.lagrangian.ranks.match` gives pixels the rates of their own region.
    With plain ranks of a large grid, storms whose small scales have faded would hand their
    strongest rates to larger ones a thousand kilometres away.

    Parameters
    ----------
    field : ndarray, (y, x) float32
        NaN is missing.
    rain : ndarray, (y, x) float32
        Rain rate in mm h-1, such as the last frame that the field is a forecast of.
    spacing_km : float
        Of the pixels.

    Returns
    -------
    ndarray, (y, x) float32
        From 0 to 1, and NaN where ``field`` or ``rain`` is. Within a window where it is dry, and
        where a grid has one window, plain ranks. Pixels between the middles of four windows have
        the mean of what these give them, by distance, in the logit.

    References
    ----------
    Windows and their interpolation are those of Zuiderveld, "Contrast limited adaptive histogram
    equalization", Graphics Gems IV (1994), 474-485.
    """
    out = np.full_like(field, np.nan)
    known = np.isfinite(field) & np.isfinite(rain)
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
        _count, (counts, rates, np.arange(blocks[0])), 1, field, rain, blocks[0], low, per_class
    )
    tables = _tables(counts, rates)
    over_rows(
        _look_up, (out, field, rain, np.arange(len(field))), 64, tables, len(field), low, per_class
    )
    return out


def _windows(counts: NDArray[np.int32]) -> NDArray[np.int64]:
    """Add up histograms (block_y, block_x, class) of the blocks around each of their corners."""
    made = np.zeros((counts.shape[0] + 1, counts.shape[1] + 1, counts.shape[2]), np.int64)
    for rows in (slice(1, None), slice(None, -1)):
        for columns in (slice(1, None), slice(None, -1)):
            made[rows, columns] += counts
    return made


def _tables(counts: NDArray[np.int32], rates: NDArray[np.int32]) -> Float:
    """Return the logits of ranks at the edges of each window's classes, (y, x, CLASSES + 1)."""
    of_all = np.cumsum(rates.sum((0, 1)), dtype=np.float64)
    least = 0.5 / of_all[-1]
    below = of_all / of_all[-1]
    of_values, of_rates = (_windows(c).reshape(-1, c.shape[2]) for c in (counts, rates))
    made = np.empty((len(of_values), CLASSES + 1), np.float32)
    rank = np.zeros(CLASSES + 1)
    for table, values, totals in zip(made, of_values, np.cumsum(of_rates, axis=1), strict=True):
        np.cumsum(values, out=rank[1:])
        dry = rank < totals[0]
        stop = int(np.searchsorted(totals, totals[-1])) + 1  # no class above has a pixel
        of_grid = np.interp(
            np.interp(rank, totals[:stop], np.arange(stop)), np.arange(RATES), below
        )
        of_grid[dry] = rank[dry] / totals[0] * below[0]
        of_grid = np.clip(of_grid, least, 1 - least)
        table[:] = np.log(of_grid / (1 - of_grid))
    return made.reshape(counts.shape[0] + 1, counts.shape[1] + 1, CLASSES + 1)


@jit
def _count(counts, rates, rows, field, rain, down, low, per_class):
    """Count the pixels of rows of blocks by their value, and by the logarithm of their rate."""
    height, width = field.shape
    across, last = counts.shape[1], counts.shape[2] - 1
    scale = np.float32((RATES - 1) / np.log(MOST / LEAST))
    for n in range(len(rows)):
        start, stop = -(-rows[n] * height // down), -(-(rows[n] + 1) * height // down)
        for i in range(start, stop):
            for j in range(width):
                if np.isfinite(field[i, j]) and np.isfinite(rain[i, j]):
                    block = j * across // width
                    counts[n, block, min(int((field[i, j] - low) * per_class), last)] += 1
                    rate, k = rain[i, j], 0
                    if rate > LEAST:
                        k = min(1 + int(np.log(rate / np.float32(LEAST)) * scale), RATES - 1)
                    rates[n, block, k] += 1


@jit
def _look_up(out, field, rain, rows, tables, height, low, per_class):
    """Interpolate the rank at each pixel's value between the windows around it."""
    down, across, last = tables.shape[0] - 1, tables.shape[1] - 1, tables.shape[2] - 2
    width = field.shape[1]
    one = np.float32(1)
    for i in range(field.shape[0]):
        y = (rows[i] + 0.5) * down / height
        above = min(int(y), down - 1)
        lower = np.float32(y - above)
        for j in range(width):
            if not (np.isfinite(field[i, j]) and np.isfinite(rain[i, j])):
                continue
            x = (j + 0.5) * across / width
            left = min(int(x), across - 1)
            right = np.float32(x - left)
            at = (field[i, j] - low) * per_class
            k = min(int(at), last)
            part = at - np.float32(k)
            odds = np.float32(0)
            for more_down, weight in ((0, one - lower), (1, lower)):
                for more_right, share in ((0, one - right), (1, right)):
                    table = tables[above + more_down, left + more_right]
                    odds += weight * share * (table[k] + part * (table[k + 1] - table[k]))
            out[i, j] = one / (one + np.exp(-odds))
