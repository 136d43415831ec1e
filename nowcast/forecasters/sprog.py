"""S-PROG: rain that moves, and whose small scales fade as fast as they have been changing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nowcast.forecasters.forecast import THRESHOLDS, Forecast
from nowcast.forecasters.forecaster import check_past, check_thresholds
from nowcast.forecasters.lagrangian.advection import carry, departures
from nowcast.forecasters.lagrangian.cascade import Cascade
from nowcast.forecasters.lagrangian.exceedance import MarginTable, best_cut, exceedance
from nowcast.forecasters.lagrangian.quantile import quantile
from nowcast.forecasters.lagrangian.ranks import match, ranks
from nowcast.forecasters.margins import SHIPPED

Float = NDArray[np.float32]


@dataclass(frozen=True)
class Sprog:
    """Spectral prognosis: octaves of dB rain, each an AR(2) in the frame that moves with the rain.

    The last three frames are brought to the place of the last one, taken apart into octaves, and
    each octave is continued by its own AR(2). Small scales fade within minutes and large ones stay,
    so that the field is the expected one and smooth. It then gets back the distribution of rain
    rates that the last frame, moved, has: the field whose yes/no skill is best.

    Probabilities come from the ranks of the expected field (`MarginTable`), members from these
    probabilities at noise that has the scales of what is not known: each pixel's members have the
    probabilities as their distribution, and each member looks like rain.

    Parameters
    ----------
    table : MarginTable
        Numbers of the probabilities; by default those fitted to the project's real events.

    References
    ----------
    Seed, "A dynamic and spatial scaling approach to advection forecasting", J. Appl. Meteor. 42
    (2003), 381-388. Pulkkinen et al., "Pysteps: an open-source Python library for probabilistic
    precipitation nowcasting (v1.0)", Geosci. Model Dev. 12 (2019), 4185-4219.
    """

    n_in: int = 3
    least: int = 2
    table: MarginTable = field(default=SHIPPED, repr=False)

    def forecast(
        self,
        rain: Float,
        leads: int,
        *,
        spacing_km: float,
        step_minutes: float,
        thresholds: Sequence[float] = THRESHOLDS,
        members: int = 0,
        seed: int = 0,
    ) -> Forecast:
        """Forecast; see `nowcast.forecasters.forecaster.Forecaster.forecast`."""
        past = check_past(
            "sprog", rain, leads, spacing_km=spacing_km, step_minutes=step_minutes, least=self.least
        )
        wanted = check_thresholds("sprog", thresholds)
        shape = past.shape[1:]
        cascade = Cascade.of(past[-self.n_in :], spacing_km=spacing_km)
        forecast = np.empty((leads, *shape), np.float32)
        probability = np.empty((len(wanted), leads, *shape), np.float32)
        cuts = np.empty((len(wanted), leads), np.float32)
        ensemble = np.empty((members, leads, *shape), np.float32)
        noises = [cascade.noise(leads, seed, number) for number in range(-(-members // 2))]
        paths = departures(cascade.motion, leads)
        for lead, (expected, points) in enumerate(zip(cascade.expected(leads), paths, strict=True)):
            moved = carry(cascade.last, points)
            arrived = carry(expected, points)
            rank = ranks(arrived)
            forecast[lead] = match(rank, moved)
            minutes = (lead + 1) * step_minutes
            if wanted:
                chances = exceedance(arrived, rank, moved, wanted, minutes, self.table)
                probability[:, lead] = chances
                cuts[:, lead] = [best_cut(chance) for chance in chances]
            if members:
                chances = exceedance(arrived, rank, moved, THRESHOLDS, minutes, self.table)
                for number, noise in enumerate(noises):
                    normal = carry(next(noise), points)
                    # Members in pairs of opposite noise stand for the distribution better.
                    for k, sign in ((2 * number, 1), (2 * number + 1, -1)):
                        if k < members:
                            quantile(sign * normal, chances, THRESHOLDS, ensemble[k, lead])
        return Forecast(
            forecast,
            wanted,
            probability if wanted else None,
            ensemble if members else None,
            cuts if wanted else None,
        )
