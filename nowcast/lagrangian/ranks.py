"""Ranks of pixels, in the grid and in their region, and rain rates at a rank or a probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows

Float = NDArray[np.float32]

#: Classes of the histogram that stands for a field's distribution; inside of one it is even.
CLASSES = 8192
#: Width of a class below which a field is flat, and all its pixels are in the middle.
FLAT = 1e-6
#: How far in km to each side the last frame's largest rate counts.
REACH_KM = 12.0


def ranks(field: Float) -> Float:
    """Return the share of known pixels that are smaller than each pixel, from 0 to 1.

    - ``field`` (y, x): NaN is missing, and stays so.

    Notes
    -----
    From a histogram of `CLASSES` classes between the extremes, with even distribution within a
    class: an error below a class's share, at a tenth of the time of a sort of the pixels.
    """
    known = field[np.isfinite(field)]
    out = np.full_like(field, np.nan)
    if not known.size:
        return out
    low, high = float(known.min()), float(known.max())
    width = (high - low) / CLASSES
    if width < FLAT:
        out[np.isfinite(field)] = 0.5
        return out
    counts = _count(known, np.float32(low), np.float32(width), CLASSES)
    below = np.zeros(CLASSES + 1, np.float32)
    below[1:] = np.cumsum(counts) / known.size
    over_rows(_rank, (out, field), 64, below, np.float32(low), np.float32(width))
    return out


def match(rank: Float, reference: Float) -> Float:
    """Give pixels the values of another field's distribution at their ranks.

    - ``rank`` (y, x): from `ranks`; NaN is missing.
    - ``reference``: values from 0 on whose distribution is wanted; NaN is left out.
    - returns (y, x): NaN where ``rank`` is, and everywhere when the reference knows nothing.
    """
    out = np.full_like(rank, np.nan)
    count = int(np.count_nonzero(reference >= 0))
    if count:
        wet = np.sort(reference[reference > 0])  # most of a radar's pixels are dry
        over_rows(_quantile, (out, rank), 64, wet, count)
    return out


def restrained(field: Float, moved: Float, spacing_km: float) -> Float:
    """Limit a field to the strongest rain of the last frame, moved, within `REACH_KM` of a pixel.

    `match` gives the strongest rates of a region to its highest ranks. Near missing data, and
    in the middle of rain that was never strong, these ranks may be far from the rates' pixels.

    - ``field``, ``moved`` (y, x): rain rate in mm h-1; NaN is missing.
    """
    most = np.nan_to_num(moved, nan=-np.inf)
    size = 2 * round(REACH_KM / spacing_km) + 1
    for axis in (0, 1):
        most = maximum_filter1d(most, size, axis, mode="nearest")
    restrained: Float = np.minimum(field, most)
    return restrained


@jit
def _count(values, low, width, classes):
    counts = np.zeros(classes, np.int64)
    for value in values:
        counts[min(int((value - low) / width), classes - 1)] += 1
    return counts


@jit
def _rank(out, field, below, low, width):
    last = len(below) - 2
    for i in range(field.shape[0]):
        for j in range(field.shape[1]):
            at = (field[i, j] - low) / width
            if np.isfinite(at):
                k = min(max(int(at), 0), last)
                part = min(max(at - np.float32(k), np.float32(0)), np.float32(1))
                out[i, j] = below[k] + part * (below[k + 1] - below[k])


@jit
def _quantile(out, rank, wet, count):
    last = count - 1
    dry = count - len(wet)
    for i in range(rank.shape[0]):
        for j in range(rank.shape[1]):
            if np.isfinite(rank[i, j]):
                at = np.float64(rank[i, j]) * last
                k = min(int(at), max(last - 1, 0))
                part = np.float32(at - k)
                after = min(k + 1, last) - dry
                if after < 0:
                    out[i, j] = np.float32(0)
                    continue
                lower = wet[k - dry] if k >= dry else np.float32(0)
                out[i, j] = lower + part * (wet[after] - lower)


#: Side in km of the windows in which ranks are taken; each reaches half into the next.
WINDOW_KM = 320.0
#: Classes of a window's histograms, of the field's values and of the logarithm of rain rates.
WINDOW_CLASSES, RATES = 1024, 2048
#: Rain rates in mm h-1 that the histogram resolves; below it is dry, above all are the same.
LEAST, MOST = 0.01, 200.0


def regional_ranks(field: Float, rain: Float, spacing_km: float) -> Float:
    """Return ranks in ``rain`` at which pixels get the rates of their own region.

    A pixel's rank in the field is taken within its region, as the rank of a rate in ``rain``, for
    `nowcast.lagrangian.ranks.match`. With ranks of a whole large grid, storms whose small scales
    have faded would lose their strongest rates to larger ones a thousand kilometres away.

    - ``field`` (y, x): NaN is missing.
    - ``rain`` (y, x): rain rate in mm h-1, such as the last frame that the field is a forecast of.
    - returns (y, x): from 0 to 1, and NaN where ``field`` or ``rain`` is. Within a window where it
      is dry, and where a grid has one window, plain ranks. Pixels between the middles of four
      windows have the mean of what these give them, by distance, in the logit.

    References
    ----------
    Windows and their interpolation: Zuiderveld, "Contrast limited adaptive histogram
    equalization", Graphics Gems IV (1994), 474-485.
    """
    out = np.full_like(field, np.nan)
    known = np.isfinite(field) & np.isfinite(rain)
    if not known.any():
        return out
    values = field[known]
    low, high = values.min(), values.max()
    per_class = np.float32(WINDOW_CLASSES / max(high - low, 1e-6))
    half = WINDOW_KM / 2 / spacing_km
    blocks = [max(1, round(n / half)) for n in field.shape]
    counts = np.zeros((*blocks, WINDOW_CLASSES), np.int32)
    rates = np.zeros((*blocks, RATES), np.int32)
    over_rows(
        _count_blocks,
        (counts, rates, np.arange(blocks[0])),
        1,
        field,
        rain,
        blocks[0],
        low,
        per_class,
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
    """Return the logits of ranks at the edges of each window's classes, (y, x, edge)."""
    of_all = np.cumsum(rates.sum((0, 1)), dtype=np.float64)
    least = 0.5 / of_all[-1]
    below = of_all / of_all[-1]
    of_values, of_rates = (_windows(c).reshape(-1, c.shape[2]) for c in (counts, rates))
    made = np.empty((len(of_values), WINDOW_CLASSES + 1), np.float32)
    rank = np.zeros(WINDOW_CLASSES + 1)
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
    return made.reshape(counts.shape[0] + 1, counts.shape[1] + 1, WINDOW_CLASSES + 1)


@jit
def _count_blocks(counts, rates, rows, field, rain, down, low, per_class):
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


#: Rain above the highest threshold falls off as a power of the rate: halved at this factor of it.
HALVED_AT = 1.4


def quantile(normal: Float, probability: Float, thresholds: tuple[float, ...], out: Float) -> None:
    """Fill ``out`` with the rain rates that are exceeded with a normal field's probability.

    - ``normal`` (y, x): standard normal: 0 takes the median, 2 the rate that is exceeded once in 44
      times.
    - ``probability`` (threshold, y, x): of exceedance, not increasing with the threshold; NaN is
      missing.
    - ``thresholds``: in mm h-1, increasing.
    - ``out`` (y, x): rain rate in mm h-1: 0 where the lowest threshold is not reached; log-linear
      between thresholds; a power law beyond the highest.
    """
    rates = np.log(np.asarray(thresholds, np.float32))
    power = np.float32(np.log(HALVED_AT) / np.log(2))
    over_rows(
        _rates_at, (out, normal, np.arange(len(out))), 64, probability, rates, power,
        np.float32(np.log(MOST)),
    )  # fmt: skip


@jit
def _tail(z):
    """Probability that a standard normal exceeds z, by Abramowitz and Stegun 7.1.26."""
    x = abs(z) * np.float32(0.70710678)
    t = np.float32(1) / (np.float32(1) + np.float32(0.3275911) * x)
    poly = t * (
        np.float32(0.254829592)
        + t * (np.float32(-0.284496736)
        + t * (np.float32(1.421413741)
        + t * (np.float32(-1.453152027) + t * np.float32(1.061405429))))
    )  # fmt: skip
    tail = np.float32(0.5) * poly * np.exp(-x * x)
    return tail if z > 0 else np.float32(1) - tail


@jit
def _rates_at(out, normal, rows, probability, rates, power, most):
    count = len(rates)
    half, sure, rare = np.float32(0.5), np.float32(3.0), np.float32(1e-3)
    for i in range(out.shape[0]):
        row = rows[i]
        for j in range(out.shape[1]):
            lowest = probability[0, row, j]
            if np.isnan(lowest) or np.isnan(normal[i, j]):
                out[i, j] = np.nan
                continue
            # Most of a map is dry: no exponential where a bound of the tail says so already.
            z = normal[i, j]
            if (z <= 0 and lowest <= half) or (z < sure and lowest < rare):
                out[i, j] = np.float32(0)
                continue
            beyond = _tail(z)
            if beyond >= lowest:
                out[i, j] = np.float32(0)
                continue
            k = 0
            while k + 1 < count and probability[k + 1, row, j] > beyond:
                k += 1
            at = probability[k, row, j]
            if k + 1 < count:
                after = max(probability[k + 1, row, j], np.float32(1e-9))
                part = np.log(at / beyond) / np.log(at / after)
                rate = rates[k] + part * (rates[k + 1] - rates[k])
            else:
                rate = rates[k] + power * np.log(at / beyond)
            out[i, j] = np.exp(min(rate, most))
