"""The sums of one case: what one forecast start adds to the scores of every forecaster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nowcast.forecasters.forecast import Forecast
from nowcast.verification.ensemble import ensemble_sums
from nowcast.verification.fractions import fraction_sums
from nowcast.verification.totals import Totals

Float = NDArray[np.float32]


@dataclass(frozen=True)
class CaseSums:
    """Sums of one case, a few kilobytes; those of several cases may be added."""

    pixels: NDArray[np.int64]  #: Pixels that were scored, (lead,) int64.
    #: Pixels of the grid, 0 at leads that are not scored, (lead,) int64.
    grid_pixels: NDArray[np.int64]
    observed_sum: NDArray[np.float64]  #: Sum of the observed rain rate in mm h-1, (lead,).
    #: Sum of ``|forecast - observed|`` in mm h-1, (forecaster, lead).
    absolute_error: NDArray[np.float64]
    #: Events forecast and observed, forecast only, observed only, (forecaster, lead, threshold)
    #: int64.
    hits: NDArray[np.int64]
    false_alarms: NDArray[np.int64]
    misses: NDArray[np.int64]
    #: Sums of squared fractions of forecast, observed and their difference, see `fraction_sums`,
    #: (forecaster, lead, threshold, scale, 3).
    fractions: NDArray[np.float64]
    #: Sum of the squared difference of probability and event (1 or 0), (forecaster, lead,
    #: threshold) float64.
    brier: NDArray[np.float64]
    #: See `nowcast.verification.ensemble.ensemble_sums`; zero pixels without members, (forecaster,
    #: lead, 3) float64.
    crps: NDArray[np.float64]


def score_case(
    observed: Float,
    forecasts: Mapping[str, Forecast],
    thresholds: Sequence[float],
    windows: Sequence[int],
    leads: NDArray[np.bool_] | None = None,
    totals: Totals | None = None,
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
    forecasts : mapping of str to Forecast
        Of each forecaster, with the same leads.
    thresholds : sequence of float
        Rain rates in mm h-1.
    windows : sequence of int
        Sides of the windows of the fractions, in pixels.
    leads : ndarray, (lead,) bool, optional
        Which leads are scored; all by default.
    totals : Totals, optional
        Gets what is only wanted of all cases together.
    """
    scored = np.isfinite(observed)
    for forecast in forecasts.values():
        scored &= np.isfinite(forecast.rain)
    if leads is not None:
        scored[~leads] = False
    n, shape = len(forecasts), (len(observed), len(thresholds))
    hits, false_alarms, misses = np.zeros((3, n, *shape), np.int64)
    brier = np.zeros((n, *shape))
    crps = np.zeros((n, len(observed), 3))
    absolute_error = np.zeros((n, len(observed)))
    fractions = np.zeros((n, *shape, len(windows), 3))

    events = [(observed >= np.float32(threshold)) & scored for threshold in thresholds]
    for m, forecast in enumerate(forecasts.values()):
        error = np.subtract(forecast.rain, observed, out=np.zeros_like(observed), where=scored)
        absolute_error[m] = np.abs(error, out=error).sum((1, 2), dtype=np.float64)
        for t, threshold in enumerate(thresholds):
            o, f = events[t], occurs(forecast, threshold) & scored
            hits[m, :, t] = np.count_nonzero(f & o, axis=(1, 2))
            false_alarms[m, :, t] = np.count_nonzero(f & ~o, axis=(1, 2))
            misses[m, :, t] = np.count_nonzero(o & ~f, axis=(1, 2))
            for s, window in enumerate(windows):
                fractions[m, :, t, s] = fraction_sums(f, o, window)
            probability = forecast.exceedance(threshold)
            wrong = np.subtract(probability, o, out=np.zeros_like(probability), where=scored)
            brier[m, :, t] = np.square(wrong, out=wrong).sum((1, 2), dtype=np.float64)
            more_than_yes = forecast.probability is not None or forecast.members is not None
            if totals is not None and more_than_yes:
                totals.add_probability(m, t, probability, o, scored)
        crps[m] = _crps(forecast, observed, scored, m, totals)
        if totals is not None:
            totals.add_power(m, forecast, scored)
    if totals is not None:
        totals.add_observed_power(observed, scored)
    pixels = np.count_nonzero(scored, axis=(1, 2)).astype(np.int64)
    grid_pixels = np.full(len(observed), observed[0].size, np.int64)
    if leads is not None:
        grid_pixels[~leads] = 0
    observed_sum = np.where(scored, observed, 0).sum((1, 2), dtype=np.float64)
    return CaseSums(
        pixels, grid_pixels, observed_sum, absolute_error, hits, false_alarms, misses, fractions,
        brier, crps,
    )  # fmt: skip


def occurs(forecast: Forecast, threshold: float) -> NDArray[np.bool_]:
    """Return a forecast's yes and no to "the rain rate reaches the threshold", (lead, y, x).

    By its probability where it says from which one on it means yes, else by its single field.
    """
    if forecast.event_probability is not None and threshold in forecast.thresholds:
        k = forecast.thresholds.index(threshold)
        least = forecast.event_probability[k][:, np.newaxis, np.newaxis]
        return np.asarray(forecast.exceedance(threshold) >= least)
    return np.asarray(forecast.rain >= np.float32(threshold))


def _crps(
    forecast: Forecast,
    observed: Float,
    scored: NDArray[np.bool_],
    number: int,
    totals: Totals | None,
) -> NDArray[np.float64]:
    """Return the sums of the CRPS of the members, or of a single field, (lead, 3).

    A forecast that has probabilities of a few thresholds and no members has no CRPS: that of its
    field would not be its own.
    """
    sums = np.zeros((len(observed), 3))
    if forecast.members is None and forecast.probability is not None:
        return sums
    members = forecast.rain[np.newaxis] if forecast.members is None else forecast.members
    for lead in range(len(observed)):
        sums[lead], ranks = ensemble_sums(members[:, lead], observed[lead], scored[lead])
        if totals is not None and forecast.members is not None:
            totals.add_ranks(number, lead, ranks)
    return sums
