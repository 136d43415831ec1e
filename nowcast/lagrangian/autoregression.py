"""Autoregressive models of the bands of rain: how fast each scale forgets, and its tendency."""

from __future__ import annotations

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
        What is kept from step to step, from 0 to 1.
    """

    mean: float
    root: float

    def ahead(self, leads: int) -> NDArray[np.float64]:
        """Return weights (leads, 2) of the last two anomalies in the expected one at each lead."""
        lead = np.arange(1, leads + 1)
        kept = self.root**lead
        return np.stack([kept * (1 + lead), -kept * lead * self.root], axis=1)

    @property
    def correlation(self) -> float:
        """Correlation of two steps that follow each other."""
        return lag_one(self.root)

    def forgotten(self, leads: int) -> NDArray[np.float64]:
        """Return the part (leads,) of the band's variance that its last frames do not tell."""
        # The innovations' weights are those of the last anomaly; their squares add up to the whole.
        r = self.root**2
        whole = (1 + r) / (1 - r) ** 3
        lead = np.arange(leads)
        return np.cumsum(((1 + lead) * self.root**lead) ** 2) / whole


def fit(past: list[Pyramid]) -> list[BandModel]:
    """Estimate the model of each band from two or three pyramids in the moving frame, oldest first.

    The root is the mean of those that the correlations of the last frame with the one before and
    with the one before that have; with two frames, of the first alone.
    """
    return [_fit_band([p.bands[k] for p in past], [p.weights[k] for p in past])
            for k in range(len(past[-1].bands))]  # fmt: skip


def lag_one(root: float) -> float:
    """Return the correlation at one step of an AR(2) with a double root."""
    return 2 * root / (1 + root**2)


def lag_two(root: float) -> float:
    """Return the correlation at two steps of an AR(2) with a double root."""
    return 4 * root**2 / (1 + root**2) - root**2


def root_of_lag_one(correlation: float) -> float:
    """Return the double root by which `lag_one` is a correlation from 0 to 1."""
    return float((1 - (1 - correlation**2) ** 0.5) / correlation) if correlation > 0 else 0.0


def root_of_lag_two(correlation: float) -> float:
    """Return the double root by which `lag_two` is a correlation from 0 to 1."""
    return float(brentq(lambda r: lag_two(r) - correlation, 0.0, 1.0)) if correlation > 0 else 0.0


def _fit_band(bands: list[Float], weights: list[Float]) -> BandModel:
    weight = weights[-1]
    total = float(weight.sum(dtype=np.float64))
    mean = float((bands[-1] * weight).sum(dtype=np.float64)) / total if total else 0.0
    roots = [root_of_lag_one(_correlation(bands[-1], bands[-2], weights[-1], weights[-2]))]
    if len(bands) > 2:
        two = _correlation(bands[-1], bands[-3], weights[-1], weights[-3])
        roots.append(root_of_lag_two(two) if two else roots[0])
    return BandModel(mean, sum(roots) / len(roots))


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
