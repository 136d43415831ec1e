"""Autoregressive models of the bands of rain: how fast each scale forgets, and its tendency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from nowcast.lagrangian.pyramid import Pyramid

Float = NDArray[np.float32]

#: Correlations are kept below this, so that every band forgets in the end.
LARGEST = 0.99999


@dataclass(frozen=True)
class BandModel:
    """Critically damped AR(2) of one band: both roots of its polynomial are the same.

    Rain goes on growing or decaying for a while where it did so between the last two frames, the
    longer the larger the scale is, and returns to the mean without overshooting. A free AR(2) has
    two parameters a band, which three frames cannot tell apart: a frame with an error is taken for
    a band without a tendency. One parameter is estimated well, and the tendency follows from it.

    Attributes
    ----------
    mean : float
        To which the band returns.
    root : float
        What is kept from one time to the next, from 0 to 1. The unit of time is that between the
        last two frames.
    """

    mean: float
    root: float

    def ahead(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weights (time, 2) of the last two anomalies in the expected one at each time."""
        kept = self.root**times
        return np.stack([kept * (1 + times), -kept * times * self.root], axis=1)

    def forgotten(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the part (time,) of the band's variance that its last frames do not tell.

        Between whole times it grows evenly.
        """
        # The innovations' weights are those of the last anomaly; their squares add up to the whole.
        r = self.root**2
        whole = (1 + r) / (1 - r) ** 3
        at = np.arange(int(np.ceil(times.max())) + 1)
        told = np.concatenate([[0.0], np.cumsum(((1 + at) * self.root**at) ** 2)]) / whole
        return np.interp(times, np.arange(len(told)), told)


def fit(past: list[Pyramid], ages: Sequence[float]) -> list[BandModel]:
    """Estimate the model of each band from two pyramids or more in the moving frame, oldest first.

    Parameters
    ----------
    past : list of Pyramid
    ages : sequence of float
        Of each, in any unit. The root is the mean of those that the correlations of the last one
        with each other one have.
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
    """Return the double root of which `lagged` after a time is a correlation from 0 to 1."""
    if correlation <= 0:
        return 0.0
    return float(brentq(lambda root: lagged(root, time) - correlation, 0.0, 1.0))


def _fit_band(bands: list[Float], weights: list[Float], times: list[float]) -> BandModel:
    weight = weights[-1]
    total = float(weight.sum(dtype=np.float64))
    mean = float((bands[-1] * weight).sum(dtype=np.float64)) / total if total else 0.0
    kept = [
        _correlation(bands[-1], band, weight, w)
        for band, w in zip(bands[:-1], weights[:-1], strict=True)
    ]
    roots = [root_of(c, time) for c, time in zip(kept, times, strict=True) if c > 0]
    return BandModel(mean, sum(roots) / len(roots) if roots and kept[-1] > 0 else 0.0)


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
