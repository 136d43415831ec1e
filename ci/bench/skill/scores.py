"""Sums of one start and lead for one method, from which all scores of the table are computed."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nowcast.verification.fractions import band_power, fraction_sums, radial_power
from nowcast.verification.probability import ensemble_sums, probability_sums

#: Thresholds of the table in mm h-1; probabilities are judged at `PROBABLE`.
THRESHOLDS = (0.1, 1.0, 5.0, 10.0, 20.0)
PROBABLE = 1.0
#: Side of the FSS windows, and wavelengths of the detail that blur takes away, in km.
FSS_KM, DETAIL_KM = 10.0, (4.0, 16.0)
#: Edges in dB of the bins of the forecast's rain rate: a tenth of a dB, and the thresholds.
EDGES = np.unique(np.concatenate([np.arange(-150, 600) / 10, 10 * np.log10(THRESHOLDS)]))

Sums = NDArray[np.float64]


@dataclass(frozen=True)
class Forecast:
    """A forecast at the scored lead times.

    Parameters
    ----------
    rain : ndarray, (lead, y, x) float32
        Rain rate in mm h-1, NaN where it is not known.
    members : ndarray, (member, lead, y, x) float32, optional
        Ensemble in mm h-1.
    probability : ndarray, (lead, y, x) float32, optional
        Probability of a rain rate at or above 1 mm h-1.
    yes : dict of float to ndarray, (lead, y, x) bool, optional
        The method's yes and no to each threshold in mm h-1, if they do not come from the field.
    seconds : float
        CPU time for all leads.
    """

    rain: NDArray[np.float32]
    members: NDArray[np.float32] | None = None
    probability: NDArray[np.float32] | None = None
    yes: dict[float, NDArray[np.bool_]] | None = None
    seconds: float = 0.0


@dataclass
class Scores:
    """Sums of one method at one lead; sums of several starts may be added.

    Attributes
    ----------
    table : ndarray, (threshold, 2, bin) float64
        Pixels without and with an observed event, by the forecast's rain rate.
    decided : ndarray, (threshold, 3) float64
        Hits, false alarms and misses of the method's yes and no; zero without.
    fractions : ndarray, (threshold, 3) float64
        Of the field, see `nowcast.verification.fractions.fraction_sums`. A method's yes and no is
        made for the largest CSI, so it says yes often; FSS should not depend on this bias.
    brier : ndarray, (bin, 5) float64
        Of the method's probability of `PROBABLE`, see `probability_sums`; zero without one.
    crps : ndarray, (3,) float64
        Of the members, see `ensemble_sums`; for a single field the absolute error.
    detail : ndarray, (2,) float64
        Power of the rain in dB at the wavelengths `DETAIL_KM`, forecast and observed; for an
        ensemble the power of its first member.
    seconds, starts : float
        Time for all leads, and number of starts.
    """

    table: Sums = field(default_factory=lambda: np.zeros((len(THRESHOLDS), 2, len(EDGES) + 1)))
    decided: Sums = field(default_factory=lambda: np.zeros((len(THRESHOLDS), 3)))
    fractions: Sums = field(default_factory=lambda: np.zeros((len(THRESHOLDS), 3)))
    brier: Sums = field(default_factory=lambda: np.zeros((100, 5)))
    crps: Sums = field(default_factory=lambda: np.zeros(3))
    detail: Sums = field(default_factory=lambda: np.zeros(2))
    seconds: float = 0.0
    starts: float = 0.0

    def __add__(self, other: Scores) -> Scores:
        return Scores(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @cached_property
    def reached(self) -> Sums:
        """Pixels whose forecast reaches each edge, (threshold, 2, edge)."""
        return self.table[..., ::-1].cumsum(-1)[..., ::-1][..., 1:]

    def csi(self, threshold: float, forecast_threshold: float | None = None) -> float:
        """Critical success index; the forecast may be cut at another rain rate."""
        hits, false_alarms, misses = self.counts(threshold, forecast_threshold)
        union = hits + false_alarms + misses
        return float(hits / union) if union else float("nan")

    def counts(
        self, threshold: float, forecast_threshold: float | None = None
    ) -> tuple[float, float, float]:
        """Return hits, false alarms and misses."""
        t = THRESHOLDS.index(threshold)
        cut = threshold if forecast_threshold is None else forecast_threshold
        at = int(np.argmin(np.abs(EDGES - 10 * np.log10(cut))))
        false_alarms, hits = self.reached[t, :, at]
        return hits, false_alarms, self.table[t, 1].sum() - hits

    def fss(self, threshold: float) -> float:
        """Fractions skill score in windows of `FSS_KM`."""
        forecast, observed, difference = self.fractions[THRESHOLDS.index(threshold)]
        total = forecast + observed
        return float(1 - difference / total) if total else float("nan")


def score(
    forecast: Forecast,
    lead: int,
    observed: NDArray[np.float32],
    scored: NDArray[np.bool_],
    spacing: float,
) -> Scores:
    """Score lead number ``lead`` of a forecast against an observation, on the pixels ``scored``.

    Parameters
    ----------
    forecast : Forecast
    lead : int
        Position on the forecast's lead axis.
    observed : ndarray, (y, x) float32
        Rain rate in mm h-1.
    scored : ndarray, (y, x) bool
        Where the observation and the forecasts of all methods are finite.
    spacing : float
        Size of the pixels, in km.
    """
    result = Scores(seconds=forecast.seconds, starts=1)
    rain = np.where(scored, forecast.rain[lead], 0).astype(np.float32)
    truth = np.where(scored, observed, 0).astype(np.float32)
    bins = _bins(rain[scored])
    window = max(1, round(FSS_KM / spacing))
    for t, threshold in enumerate(THRESHOLDS):
        event = (truth >= threshold) & scored
        for seen in (0, 1):
            chosen = bins[event[scored] == bool(seen)]
            result.table[t, seen] = np.bincount(chosen, minlength=len(EDGES) + 1)
        reached = (rain >= np.float32(threshold)) & scored
        if forecast.yes is not None:
            yes = forecast.yes[threshold][lead] & scored
            result.decided[t] = [
                np.count_nonzero(both) for both in (yes & event, yes & ~event, event & ~yes)
            ]
        result.fractions[t] = fraction_sums(reached[np.newaxis], event[np.newaxis], window)[0]
    probability = _probability(forecast, lead)
    if probability is not None:
        result.brier = probability_sums(probability, truth >= PROBABLE, scored)
    members = (
        forecast.rain[np.newaxis, lead] if forecast.members is None else forecast.members[:, lead]
    )
    result.crps, _ = ensemble_sums(members, truth, scored)
    one = np.where(scored, members[0], 0).astype(np.float32)
    result.detail = np.array(
        [band_power(*radial_power(values, spacing), *DETAIL_KM) for values in (one, truth)]
    )
    return result


def _probability(forecast: Forecast, lead: int) -> NDArray[np.float32] | None:
    """Return the method's probability of `PROBABLE`, else the fraction of its members."""
    if forecast.probability is not None:
        return forecast.probability[lead]
    if forecast.members is not None:
        reached = forecast.members[:, lead] >= np.float32(PROBABLE)
        return reached.mean(0, dtype=np.float32)
    return None


def _bins(rain: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the bin of each rain rate; edges are float32, as thresholds are elsewhere."""
    return np.digitize(rain, (10 ** (EDGES / 10)).astype(np.float32))
