"""Persistence and extrapolation: the last frame stays, or moves on as it moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcast.forecasters.forecast import Forecast
from nowcast.forecasters.forecaster import Request
from nowcast.lagrangian.advection import advect
from nowcast.lagrangian.frames import BASELINE
from nowcast.lagrangian.motion import motion_field


@dataclass(frozen=True)
class Extrapolation:
    """Lagrangian persistence: the last frame carried along the motion of the last frames."""

    n_in: int = 3
    least: int = 2
    baseline: float | None = BASELINE

    def forecast(self, rain: NDArray[np.float32], leads: int, **settings: Any) -> Forecast:
        """Carry ``rain[-1]`` on; see `nowcast.forecasters.forecaster.Forecaster.forecast`.

        Pixels whose rain would come from outside of the grid, or from missing pixels, are NaN.
        """
        request = Request(rain, leads, **settings)
        past, ages = request.last("extrapolation", self.least, self.n_in, self.baseline)
        motion = motion_field(
            past, spacing_km=request.spacing_km, step_minutes=request.step_minutes, ages=ages
        )
        return Forecast(advect(past[-1], motion, leads, before=ages[-1]))


@dataclass(frozen=True)
class Persistence:
    """Forecast that repeats the last frame.

    Examples
    --------
    >>> import numpy as np
    >>> last = np.array([[0.0, 1.5]], np.float32)
    >>> Persistence().forecast(last[np.newaxis], 2, spacing_km=1, step_minutes=5).rain
    array([[[0. , 1.5]],
    <BLANKLINE>
           [[0. , 1.5]]], dtype=float32)
    """

    n_in: int = 1
    least: int = 1

    def forecast(self, rain: NDArray[np.float32], leads: int, **settings: Any) -> Forecast:
        """Repeat ``rain[-1]``; see `nowcast.forecasters.forecaster.Forecaster.forecast`."""
        past = Request(rain, leads, **settings).past("persistence", self.least)
        return Forecast(np.repeat(past[-1:], leads, axis=0))
