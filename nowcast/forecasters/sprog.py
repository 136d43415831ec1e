"""S-PROG: rain that moves, and whose small scales fade as fast as they have been changing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nowcast.forecasters.forecast import THRESHOLDS, Forecast
from nowcast.forecasters.forecaster import check_past
from nowcast.forecasters.lagrangian.advection import carry, departures
from nowcast.forecasters.lagrangian.cascade import Cascade
from nowcast.forecasters.lagrangian.ranks import match, ranks

Float = NDArray[np.float32]


@dataclass(frozen=True)
class Sprog:
    """Spectral prognosis: octaves of dB rain, each an AR(2) in the frame that moves with the rain.

    The last three frames are brought to the place of the last one, taken apart into octaves, and
    each octave is continued by its own AR(2). Small scales fade within minutes and large ones stay,
    so that the field is the expected one and smooth. It then gets back the distribution of rain
    rates that the last frame, moved, has: the field whose yes/no skill is best.

    References
    ----------
    Seed, "A dynamic and spatial scaling approach to advection forecasting", J. Appl. Meteor. 42
    (2003), 381-388. Pulkkinen et al., "Pysteps: an open-source Python library for probabilistic
    precipitation nowcasting (v1.0)", Geosci. Model Dev. 12 (2019), 4185-4219.
    """

    n_in: int = 3
    least: int = 2

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
        cascade = Cascade.of(past[-self.n_in :], spacing_km=spacing_km)
        forecast = np.empty((leads, *past.shape[1:]), np.float32)
        paths = departures(cascade.motion, leads)
        for frame, field, points in zip(forecast, cascade.expected(leads), paths, strict=True):
            rank = ranks(carry(field, points))
            frame[...] = match(rank, carry(cascade.last, points))
        return Forecast(forecast)
