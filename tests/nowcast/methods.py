"""Forecasters for tests: the plain methods, and any function from frames to frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nowcast.forecasters import Extrapolation, Forecast, Forecaster, Persistence


@dataclass(frozen=True)
class FieldsOnly:
    """A forecaster with its settings: called with frames, it answers with its single field.

    Parameters
    ----------
    forecaster : Forecaster
    leads : int
        Number of frames to forecast.
    spacing_km, step_minutes : float
        Of the frames that it will be called with.
    """

    forecaster: Forecaster
    leads: int
    spacing_km: float
    step_minutes: float

    def __call__(self, rain: np.ndarray, /) -> np.ndarray:
        """Forecast (n_in, y, x) -> (leads, y, x), mm h-1."""
        return self.forecaster.forecast(
            rain[-self.forecaster.n_in :],
            self.leads,
            spacing_km=self.spacing_km,
            step_minutes=self.step_minutes,
            thresholds=(),
        ).rain


def persistence(leads: int) -> FieldsOnly:
    """The last frame, so many times, as a function, on 1 km and 5 min."""
    return FieldsOnly(Persistence(), leads, 1.0, 5.0)


def extrapolation(leads: int) -> FieldsOnly:
    """The last frame, moved on, as a function, on 1 km and 5 min."""
    return FieldsOnly(Extrapolation(), leads, 1.0, 5.0)


class Answers:
    """Forecaster that answers as a function of (frames, leads, ...) does, a field or a Forecast."""

    def __init__(self, answer: Callable[..., Any], n_in: int = 1) -> None:
        self.answer, self.n_in, self.least = answer, n_in, n_in

    def forecast(self, rain: np.ndarray, leads: int, **settings: Any) -> Forecast:
        made = self.answer(rain, leads)
        return made if isinstance(made, Forecast) else Forecast(made)


def oracle(observed: np.ndarray, factor: float = 1.0, n_in: int = 3) -> Answers:
    """Forecaster that looks up what was observed, times ``factor``; beyond the end, the last."""

    def look_up(frames: np.ndarray, leads: int) -> np.ndarray:
        last = next(i for i, f in enumerate(observed) if np.array_equal(f, frames[-1], True))
        wanted = np.minimum(np.arange(last + 1, last + 1 + leads), len(observed) - 1)
        return observed[wanted] * np.float32(factor)

    return Answers(look_up, n_in)
