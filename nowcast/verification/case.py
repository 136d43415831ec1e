"""The sums of one case (a start) for every forecaster, and of all cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nowcast.forecasters.forecast import Forecast
from nowcast.verification.fractions import band_power, fraction_sums, radial_power
from nowcast.verification.probability import BINS, ensemble_sums, probability_sums

Float = NDArray[np.float32]

#: Edges in km of the bands of wavelengths of the spectra, octaves.
BANDS = tuple(2.0**k for k in range(1, 10))
SUMS = ("probability", "power", "observed_power")


class Totals:
    """Running sums by forecaster, lead and threshold.

    Spectra are computed only at ``spectrum_leads`` (indices of leads), since each costs a Fourier
    transform.
    """

    def __init__(
        self, forecasters: int, leads: int, thresholds: int, spectrum_leads: Sequence[int]
    ) -> None:
        #: See `nowcast.verification.probability.probability_sums`, (forecaster, lead, threshold,
        #: BINS, 5); zero for yes and no forecasts.
        self.probability = np.zeros((forecasters, leads, thresholds, BINS, 5))
        #: Rank histograms (lead, member + 1) by forecaster.
        self.ranks: list[NDArray[np.float64] | None] = [None] * forecasters
        #: Power of the rain in dB by octave of wavelength, (forecaster, lead, band); an ensemble
        #: has the power of its first member.
        self.power = np.zeros((forecasters, leads, len(BANDS) - 1))
        self.observed_power = np.zeros((leads, len(BANDS) - 1))
        self.spectrum_leads = tuple(spectrum_leads)
        self.spacing_km = 1.0

    def add(self, other: Totals) -> None:
        """Add the sums of other cases."""
        self.probability += other.probability
        self.power += other.power
        self.observed_power += other.observed_power
        for m, counts in enumerate(other.ranks):
            ranks = self.ranks[m]
            if counts is not None:
                self.ranks[m] = counts if ranks is None else ranks + counts

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return all sums by name, for a file."""
        ranks = {f"ranks{m}": n for m, n in enumerate(self.ranks) if n is not None}
        return {name: getattr(self, name) for name in SUMS} | ranks

    def take(self, arrays: Mapping[str, NDArray[np.float64]]) -> None:
        """Set the sums from `arrays`."""
        for name in SUMS:
            setattr(self, name, arrays[name])
        self.ranks = [arrays.get(f"ranks{m}") for m in range(len(self.ranks))]

    def add_ranks(self, forecaster: int, lead: int, ranks: NDArray[np.float64]) -> None:
        """Add the rank counts of one lead."""
        leads = self.probability.shape[1]
        counts = self.ranks[forecaster]
        if counts is None:
            counts = self.ranks[forecaster] = np.zeros((leads, len(ranks)))
        counts[lead] += ranks

    def add_power(self, forecaster: int | None, rain: Float, scored: NDArray[np.bool_]) -> None:
        """Add the spectra of a forecast, or of the observation (None), (lead, y, x).

        Pixels that are not scored count as dry.
        """
        sums = self.observed_power if forecaster is None else self.power[forecaster]
        for lead in self.spectrum_leads:
            if scored[lead].any():
                sums[lead] += self._bands(rain[lead], scored[lead])

    def _bands(self, rain: Float, scored: NDArray[np.bool_]) -> NDArray[np.float64]:
        wavelength, power = radial_power(np.where(scored, rain, np.float32(0)), self.spacing_km)
        return np.nan_to_num(
            [
                band_power(wavelength, power, BANDS[k], np.nextafter(BANDS[k + 1], 0))
                for k in range(len(BANDS) - 1)
            ]
        )


@dataclass(frozen=True)
class CaseSums:
    """Sums of one case, a few kilobytes; sums of several cases may be added."""

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
    #: See `nowcast.verification.probability.ensemble_sums`; zero pixels without members,
    #: (forecaster, lead, 3).
    crps: NDArray[np.float64]


def score_case(
    observed: Float,
    forecasts: Mapping[str, Forecast],
    thresholds: Sequence[float],
    windows: Sequence[int],
    leads: NDArray[np.bool_] | None = None,
    totals: Totals | None = None,
) -> CaseSums:
    """Compare forecasts with the observation, all on the same pixels.

    A pixel is scored at a lead when the observation and every forecast are finite there.
    An event is a rain rate at or above the threshold; pixels that are not scored have no event,
    neither in forecasts nor in the observation. The counts are made here and not by
    ``scores.categorical.ThresholdEventOperator``, which builds each cell of the table as a float
    field: 12 x 512 x 512 pixels and one threshold took it 990 ms, and this 19 ms. A test holds both
    equal.

    - ``observed`` (lead, y, x): rain rate in mm h-1, NaN where missing.
    - ``forecasts``: the forecast of each forecaster, with the same leads.
    - ``thresholds``: rain rates in mm h-1.
    - ``windows``: sides of the windows of the fractions, in pixels.
    - ``leads`` (lead,): which leads are scored; all by default.
    - ``totals``: gets the sums that are needed only for all cases together.
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
                for lead in range(len(o)):
                    sums = probability_sums(probability[lead], o[lead], scored[lead])
                    totals.probability[m, lead, t] += sums
        crps[m] = _crps(forecast, observed, scored, m, totals)
        if totals is not None:
            rain = forecast.rain if forecast.members is None else forecast.members[0]
            totals.add_power(m, rain, scored)
    if totals is not None:
        totals.add_power(None, observed, scored)
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
    """Return the pixels where a forecast says that rain reaches the threshold, (lead, y, x).

    It uses the probability, if the forecast has the one from which on it says yes; else the field.
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

    A forecast with probabilities of a few thresholds and no members has no CRPS; its field's CRPS
    would not be the forecast's.
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
