"""A forecast: a field of rain for each lead time, and its uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from nowcast.lagrangian.exceedance import THRESHOLDS

__all__ = ["THRESHOLDS", "Forecast", "divided", "joined"]

Float = NDArray[np.float32]


@dataclass(frozen=True)
class Forecast:
    """Result of a forecaster: a field for each lead time, maybe probabilities and members.

    Attributes
    ----------
    rain : ndarray, (lead, y, x) float32
        Rain rate in mm h-1, the forecaster's single best field; NaN where it cannot know.
    thresholds : tuple of float
        Rain rates in mm h-1 of ``probability``, increasing.
    probability : ndarray, (threshold, lead, y, x) float32, optional
        Probability from 0 to 1 that the rain rate reaches each threshold, never larger at a larger
        threshold; NaN where ``rain`` is.
    members : ndarray, (member, lead, y, x) float32, optional
        Equally likely fields of rain rate in mm h-1.
    event_probability : ndarray, (threshold, lead) float32, optional
        The probability from which on a yes/no forecast of each threshold says yes: it maximises
        the CSI that the forecast expects, with hardly more area than it expects to have rain.

    Examples
    --------
    >>> rain = np.array([[[0.0, 2.5]]], np.float32)
    >>> Forecast(rain).exceedance(1.0)
    array([[[0., 1.]]], dtype=float32)
    """

    rain: Float
    thresholds: tuple[float, ...] = ()
    probability: Float | None = None
    members: Float | None = None
    event_probability: Float | None = None

    def exceedance(self, threshold: float) -> Float:
        """Return the probability (lead, y, x) that the rain rate reaches a threshold.

        It is the forecaster's own probability, else the fraction of members, else 0 or 1 by the
        single field.

        - raises SettingsError if the forecaster gave probabilities, but not of this threshold.
        """
        if self.probability is not None:
            if threshold not in self.thresholds:
                raise SettingsError(
                    f"exceedance: expected a threshold among {self.thresholds} mm/h, "
                    f"found {threshold!r}; ask the forecaster for it."
                )
            return self.probability[self.thresholds.index(threshold)]
        fields = self.rain[np.newaxis] if self.members is None else self.members
        reached = (fields >= np.float32(threshold)).mean(axis=0, dtype=np.float32)
        reached[np.isnan(self.rain)] = np.nan
        return reached

    def at(self, leads: slice | list[int]) -> Forecast:
        """Return the forecast of some of its lead times, by their positions."""
        probability, members, event_probability = (
            None if array is None else array[:, leads]
            for array in (self.probability, self.members, self.event_probability)
        )
        return Forecast(self.rain[leads], self.thresholds, probability, members, event_probability)

    def quantiles(self, levels: tuple[float, ...]) -> Float:
        """Return quantiles of the rain rate, (level, lead, y, x) in mm h-1.

        They come from the members, if there are any, else from the probabilities: log-linear in
        the rain rate between thresholds, 0 below the lowest, the highest threshold above it.

        - raises SettingsError if a level is not between 0 and 1, or the forecast has neither
          members nor probabilities.
        """
        if not levels or not all(0 < level < 1 for level in levels):
            raise SettingsError(
                f"quantiles: expected levels between 0 and 1, found {tuple(levels)!r}."
            )
        if self.members is not None:
            return np.quantile(self.members, levels, axis=0).astype(np.float32)
        if self.probability is None:
            raise SettingsError(
                "quantiles: expected a forecast with members or probabilities, found neither; "
                "choose a method that gives them, such as sprog."
            )
        quantiles = np.zeros((len(levels), *self.rain.shape), np.float32)
        rates = np.log(np.asarray(self.thresholds, np.float32))
        for row, level in zip(quantiles, levels, strict=True):
            beyond = np.float32(1 - level)
            row[self.probability[-1] >= beyond] = self.thresholds[-1]
            for k in range(len(rates) - 1):
                lower, upper = self.probability[k], self.probability[k + 1]
                between = (lower >= beyond) & (upper < beyond)
                part = (lower[between] - beyond) / (lower[between] - upper[between])
                row[between] = np.exp(rates[k] + part * (rates[k + 1] - rates[k]))
            row[np.isnan(self.rain)] = np.nan
        return quantiles


def joined(parts: Iterable[Forecast], leads: int) -> Forecast:
    """Join forecasts of one lead time each, in order, into one of all ``leads``.

    - ``parts``: each is needed only until the next one is asked for.
    """
    axes = {"rain": 0, "probability": 1, "members": 1, "event_probability": 1}
    whole: dict[str, Float] = {}
    thresholds: tuple[float, ...] = ()
    for lead, part in enumerate(parts):
        thresholds = part.thresholds
        for name, axis in axes.items():
            array = getattr(part, name)
            if array is None:
                continue
            if not lead:
                shape = (*array.shape[:axis], leads, *array.shape[axis + 1 :])
                whole[name] = np.empty(shape, np.float32)
            whole[name][(slice(None),) * axis + (lead,)] = array[(slice(None),) * axis + (0,)]
    return Forecast(thresholds=thresholds, **whole)


def divided(forecast: Forecast) -> Iterator[Forecast]:
    """Yield the forecast of each lead time; `joined` puts them together again."""
    for lead in range(len(forecast.rain)):
        yield forecast.at(slice(lead, lead + 1))
