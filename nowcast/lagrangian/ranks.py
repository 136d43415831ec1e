"""Ranks of a field's pixels, and values of another distribution at these ranks."""

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

    Parameters
    ----------
    field : ndarray, (y, x) float32
        NaN is missing, and stays so.

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

    Parameters
    ----------
    rank : ndarray, (y, x) float32
        From `ranks`; NaN is missing.
    reference : ndarray, float32
        Values from 0 on whose distribution is wanted; NaN is left out.

    Returns
    -------
    ndarray, (y, x) float32
        NaN where ``rank`` is, and everywhere when the reference knows nothing.
    """
    out = np.full_like(rank, np.nan)
    count = int(np.count_nonzero(reference >= 0))
    if count:
        wet = np.sort(reference[reference > 0])  # most of a radar's pixels are dry
        over_rows(_quantile, (out, rank), 64, wet, count)
    return out


def restrained(field: Float, moved: Float, spacing_km: float) -> Float:
    """Return a field nowhere stronger than the last frame, moved, is within `REACH_KM` of it.

    `match` gives the strongest rates of a region to its highest ranks. Beside missing data, where
    little is known, and in the middle of rain that was never strong, these may lie far from where
    the rates are from.

    Parameters
    ----------
    field, moved : ndarray, (y, x) float32
        Rain rate in mm h-1; NaN is missing.
    spacing_km : float
        Of the pixels.
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
