"""Bands of scales, and their memory: a field as a sum of octaves that forget at their own pace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows

Float = NDArray[np.float32]

#: The coarsest grid has no side of fewer pixels than this.
SMALLEST = 6


@dataclass(frozen=True)
class Pyramid:
    """Laplacian pyramid of a field with missing pixels.

    References
    ----------
    Burt and Adelson, "The Laplacian pyramid as a compact image code", IEEE Trans. Commun. 31
    (1983), 532-540; its averages are normalised here as in Knutsson and Westin, "Normalized and
    differential convolution", CVPR 1993.
    """

    #: Differences between a field and the next coarser one, from the finest octave on; last the
    #: coarsest field itself. Zero where nothing is known, (y_k, x_k).
    bands: list[Float]
    weights: list[Float]  #: Share from 0 to 1 of each pixel that is known, (y_k, x_k).


def decompose(field: Float) -> Pyramid:
    """Take a field (y, x) apart; NaN is missing and says nothing about its neighbours.

    There are as many bands as leave the coarsest `SMALLEST` pixels wide.
    """
    weight = np.isfinite(field).astype(np.float32)
    field = np.where(weight > 0, field, 0).astype(np.float32)
    bands, weights = [], [weight]
    for _ in range(levels_of(field.shape) - 1):
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
    """Halve a grid: Gaussian means of the known pixels, and their share."""
    height, width = field.shape
    shape = ((height + 1) // 2, (width + 1) // 2)
    out, share = np.empty(shape, np.float32), np.empty(shape, np.float32)
    rows = np.arange(shape[0])
    over_rows(_shrink, (out, share, rows), 64, field, weight)
    return out, share


def grow(field: Float, weight: Float, shape: tuple[int, ...]) -> Float:
    """Double a grid to a shape, smoothly, from its known pixels."""
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


#: Correlations are kept below this, so that every band forgets in the end.
LARGEST = 0.99999


@dataclass(frozen=True)
class BandModel:
    """Critically damped AR(2) of one band: both roots of its polynomial are the same.

    Rain goes on growing or decaying for a while where it did so between the last two frames, the
    longer the larger the scale is, and returns to the mean without overshooting. A free AR(2) has
    two parameters a band, which three frames cannot tell apart: an error in a frame looks like
    a band without a tendency. One parameter is estimated well, and the tendency follows from it.
    """

    mean: float  #: To which the band returns.
    #: What is kept from one time to the next, from 0 to 1. The unit of time is that between the
    #: last two frames.
    root: float

    def ahead(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weights (time, 2) of the last two anomalies in the expected one at each time."""
        decay = self.root**times
        return np.stack([decay * (1 + times), -decay * times * self.root], axis=1)

    def forgotten(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share (time,) of the band's variance that its last frames do not determine.

        Between whole times it grows evenly.
        """
        # Innovations have the last anomaly's weights; their squares add up to the whole.
        r = self.root**2
        whole = (1 + r) / (1 - r) ** 3
        at = np.arange(int(np.ceil(times.max())) + 1)
        determined = np.concatenate([[0.0], np.cumsum(((1 + at) * self.root**at) ** 2)]) / whole
        return np.interp(times, np.arange(len(determined)), determined)


def fit(past: list[Pyramid], ages: Sequence[float]) -> list[BandModel]:
    """Estimate the model of each band from two pyramids or more in the moving frame, oldest first.

    - ``ages``: of each, in any unit. The root is the mean of the roots from the correlations of
      the last pyramid with each other one.
    """
    since = np.asarray(ages[:-1]) - ages[-1]
    times = (since / since[-1]).tolist()
    return [
        _fit_band([p.bands[k] for p in past], [p.weights[k] for p in past], times)
        for k in range(len(past[-1].bands))
    ]


def lagged(root: float, time: float) -> float:
    """Return the correlation after a time of an AR(2) with a double root.

    Examples
    --------
    >>> lagged(0.5, 0), lagged(0.5, 1)  # 2 r / (1 + r^2)
    (1.0, 0.8)
    """
    return float(root**time * (1 + time * (1 - root**2) / (1 + root**2)))


def root_of(correlation: float, time: float) -> float:
    """Return the double root whose `lagged` after a time is this correlation, from 0 to 1."""
    if correlation <= 0:
        return 0.0
    return float(brentq(lambda root: lagged(root, time) - correlation, 0.0, 1.0))


def _fit_band(bands: list[Float], weights: list[Float], times: list[float]) -> BandModel:
    weight = weights[-1]
    total = float(weight.sum(dtype=np.float64))
    mean = float((bands[-1] * weight).sum(dtype=np.float64)) / total if total else 0.0
    correlations = [
        _correlation(bands[-1], band, weight, w)
        for band, w in zip(bands[:-1], weights[:-1], strict=True)
    ]
    roots = [root_of(c, time) for c, time in zip(correlations, times, strict=True) if c > 0]
    return BandModel(mean, sum(roots) / len(roots) if roots and correlations[-1] > 0 else 0.0)


def _correlation(a: Float, b: Float, weight_a: Float, weight_b: Float) -> float:
    """Correlation of two bands where both are known, from 0 to `LARGEST`; 0 where one is flat."""
    weight = weight_a * weight_b
    total = weight.sum(dtype=np.float64)
    if not total:
        return 0.0
    da = a - np.float32((a * weight).sum(dtype=np.float64) / total)
    db = b - np.float32((b * weight).sum(dtype=np.float64) / total)
    along = float((weight * da * db).sum(dtype=np.float64))
    squares = float((weight * da * da).sum(dtype=np.float64)) * float(
        (weight * db * db).sum(dtype=np.float64)
    )
    if squares <= 0:
        return 0.0
    return min(max(along / squares**0.5, 0.0), LARGEST)
