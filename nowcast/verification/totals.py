"""Sums over all cases of what needs no interval: reliability, rank histograms and spectra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nowcast.forecasters.forecast import Forecast
from nowcast.verification.fractions import band_power, radial_power
from nowcast.verification.probability import BINS, probability_sums

Float = NDArray[np.float32]

#: Edges in km of the bands of wavelengths of the spectra, octaves.
BANDS = tuple(2.0**k for k in range(1, 10))
SUMS = ("probability", "power", "observed_power")


class Totals:
    """Running sums of all forecasters.

    Parameters
    ----------
    forecasters, leads, thresholds : int
        How many there are.
    spectrum_leads : sequence of int
        Positions on the lead axis at which spectra are taken; each costs a Fourier transform.

    Attributes
    ----------
    probability : ndarray, (forecaster, lead, threshold, BINS, 5) float64
        See `nowcast.verification.probability.probability_sums`; zero for yes and no forecasts.
    ranks : list of (ndarray (lead, member + 1) float64 or None)
        Rank histograms by forecaster.
    power : ndarray, (forecaster, lead, band) float64
        Power of the rain in dB by octave of wavelength; of an ensemble, that of its first member.
    observed_power : ndarray, (lead, band) float64
    """

    def __init__(
        self, forecasters: int, leads: int, thresholds: int, spectrum_leads: Sequence[int]
    ) -> None:
        self.probability = np.zeros((forecasters, leads, thresholds, BINS, 5))
        self.ranks: list[NDArray[np.float64] | None] = [None] * forecasters
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
        """Take over the sums that `arrays` gave."""
        for name in SUMS:
            setattr(self, name, arrays[name])
        self.ranks = [arrays.get(f"ranks{m}") for m in range(len(self.ranks))]

    def add_probability(
        self,
        forecaster: int,
        threshold: int,
        probability: Float,
        observed: NDArray[np.bool_],
        scored: NDArray[np.bool_],
    ) -> None:
        """Add probabilities (lead, y, x) and whether there was an event."""
        for lead in range(len(probability)):
            self.probability[forecaster, lead, threshold] += probability_sums(
                probability[lead], observed[lead], scored[lead]
            )

    def add_ranks(self, forecaster: int, lead: int, ranks: NDArray[np.float64]) -> None:
        """Add the rank counts of one lead."""
        leads = self.probability.shape[1]
        counts = self.ranks[forecaster]
        if counts is None:
            counts = self.ranks[forecaster] = np.zeros((leads, len(ranks)))
        counts[lead] += ranks

    def add_power(self, forecaster: int, forecast: Forecast, scored: NDArray[np.bool_]) -> None:
        """Add the spectra of a forecast on the scored pixels, the others taken as dry."""
        fields = forecast.rain if forecast.members is None else forecast.members[0]
        for lead in self._with_pixels(scored):
            self.power[forecaster, lead] += self._bands(fields[lead], scored[lead])

    def add_observed_power(self, observed: Float, scored: NDArray[np.bool_]) -> None:
        """Add the spectra of what was observed."""
        for lead in self._with_pixels(scored):
            self.observed_power[lead] += self._bands(observed[lead], scored[lead])

    def _with_pixels(self, scored: NDArray[np.bool_]) -> list[int]:
        return [lead for lead in self.spectrum_leads if scored[lead].any()]

    def _bands(self, rain: Float, scored: NDArray[np.bool_]) -> NDArray[np.float64]:
        wavelength, power = radial_power(np.where(scored, rain, np.float32(0)), self.spacing_km)
        return np.nan_to_num(
            [
                band_power(wavelength, power, BANDS[k], np.nextafter(BANDS[k + 1], 0))
                for k in range(len(BANDS) - 1)
            ]
        )
