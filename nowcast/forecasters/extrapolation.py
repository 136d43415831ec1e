"""Persistence and extrapolation: the last frame stays, or moves on as it moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nowcast.forecasters.forecast import THRESHOLDS, Forecast
from nowcast.forecasters.forecaster import check_past
from nowcast.lagrangian.advection import advect
from nowcast.lagrangian.motion import motion_field


@dataclass(frozen=True)
class Extrapolation:
    """Lagrangian persistence: the last frame carried along the motion of the last frames."""

    n_in: int = 3
    least: int = 2

    def forecast(
        self,
        rain: NDArray[np.float32],
        leads: int,
        *,
        spacing_km: float,
        step_minutes: float,
        thresholds: Sequence[float] = THRESHOLDS,
        members: int = 0,
        seed: int = 0,
    ) -> Forecast:
        """Carry ``rain[-1]`` on; see `nowcast.forecasters.forecaster.Forecaster.forecast`.

        Pixels whose rain would come from outside of the grid, or from missing pixels, are NaN.
        """
        past = check_past(
            "extrapolation", rain, leads, spacing_km=spacing_km, step_minutes=step_minutes,
            least=self.least,
        )  # fmt: skip
        motion = motion_field(past[-self.n_in :], spacing_km=spacing_km)
        return Forecast(advect(past[-1], motion, leads))


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

    def forecast(
        self,
        rain: NDArray[np.float32],
        leads: int,
        *,
        spacing_km: float,
        step_minutes: float,
        thresholds: Sequence[float] = THRESHOLDS,
        members: int = 0,
        seed: int = 0,
    ) -> Forecast:
        """Repeat ``rain[-1]``; see `nowcast.forecasters.forecaster.Forecaster.forecast`."""
        past = check_past(
            "persistence", rain, leads, spacing_km=spacing_km, step_minutes=step_minutes,
            least=self.least,
        )  # fmt: skip
        return Forecast(np.repeat(past[-1:], leads, axis=0))
