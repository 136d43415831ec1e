"""The sums of one case: what one forecast start adds to the scores of every forecaster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nowcast.verification.fractions import fraction_sums


@dataclass(frozen=True)
class CaseSums:
    """Sums of one case, a few kilobytes; those of several cases may be added.

    Attributes
    ----------
    pixels : ndarray, (lead,) int64
        Pixels that were scored.
    absolute_error : ndarray, (forecaster, lead) float64
        Sum of ``|forecast - observed|`` in mm h-1.
    hits, false_alarms, misses : ndarray, (forecaster, lead, threshold) int64
        Events forecast and observed, forecast only, observed only.
    fractions : ndarray, (forecaster, lead, threshold, scale, 3) float64
        Sums of squared fractions of forecast, observed and their difference, see `fraction_sums`.
    """

    pixels: NDArray[np.int64]
    absolute_error: NDArray[np.float64]
    hits: NDArray[np.int64]
    false_alarms: NDArray[np.int64]
    misses: NDArray[np.int64]
    fractions: NDArray[np.float64]


def score_case(
    observed: NDArray[np.float32],
    forecasts: Mapping[str, NDArray[np.float32]],
    thresholds: Sequence[float],
    windows: Sequence[int],
) -> CaseSums:
    """Compare forecasts with what was observed, all of them on the same pixels.

    A pixel is scored at a lead when the observation and every forecast are finite there.
    An event is a rain rate at or above the threshold; outside of the scored pixels there is none,
    in the forecasts or in the observation. The counts are made here and not by
    ``scores.categorical.ThresholdEventOperator``, which builds each cell of the table as a float
    field: 12 x 512 x 512 pixels and one threshold took it 990 ms, and this 19 ms. A test holds both
    equal.

    Parameters
    ----------
    observed : ndarray, (lead, y, x) float32
        Rain rate in mm h-1, NaN where missing.
    forecasts : mapping of str to ndarray, (lead, y, x) float32
        Forecast rain rates of each forecaster.
    thresholds : sequence of float
        Rain rates in mm h-1.
    windows : sequence of int
        Sides of the windows of the fractions, in pixels.
    """
    scored = np.isfinite(observed)
    for forecast in forecasts.values():
        scored &= np.isfinite(forecast)
    forecasters, leads = len(forecasts), len(observed)
    hits, false_alarms, misses = np.zeros((3, forecasters, leads, len(thresholds)), np.int64)
    absolute_error = np.zeros((forecasters, leads))
    fractions = np.zeros((forecasters, leads, len(thresholds), len(windows), 3))

    observed_events = [(observed >= threshold) & scored for threshold in thresholds]
    for m, forecast in enumerate(forecasts.values()):
        error = np.subtract(forecast, observed, out=np.zeros_like(observed), where=scored)
        absolute_error[m] = np.abs(error, out=error).sum((1, 2), dtype=np.float64)
        for t, threshold in enumerate(thresholds):
            o, f = observed_events[t], (forecast >= threshold) & scored
            hits[m, :, t] = np.count_nonzero(f & o, axis=(1, 2))
            false_alarms[m, :, t] = np.count_nonzero(f & ~o, axis=(1, 2))
            misses[m, :, t] = np.count_nonzero(o & ~f, axis=(1, 2))
            for s, window in enumerate(windows):
                fractions[m, :, t, s] = fraction_sums(f, o, window)
    pixels = np.count_nonzero(scored, axis=(1, 2)).astype(np.int64)
    return CaseSums(pixels, absolute_error, hits, false_alarms, misses, fractions)
