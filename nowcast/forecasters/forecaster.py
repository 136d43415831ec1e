"""Forecaster: the interface of all methods, and the checks that they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError, ShapeError
from nowcast.forecasters.forecast import THRESHOLDS, Forecast, joined
from nowcast.lagrangian.frames import apart, frames_back

Float = NDArray[np.float32]


class Forecaster(Protocol):
    """A method that turns the last frames of rain into a forecast of the next ones.

    Attributes
    ----------
    n_in : int
        Number of frames that it reads, or fewer if there are fewer. If a method has an attribute
        ``baseline`` in minutes, the frames are that far apart; else they are the last ones.
    least : int
        Least number of frames; with fewer it raises ShapeError.

    Examples
    --------
    >>> class Dry:
    ...     n_in = least = 1
    ...     def forecast(self, rain, leads, **settings):
    ...         return Forecast(np.zeros((leads, *rain.shape[1:]), np.float32))
    >>> method: Forecaster = Dry()
    >>> method.forecast(np.ones((1, 2, 2), np.float32), 3).rain.shape
    (3, 2, 2)
    """

    @property
    def n_in(self) -> int:
        """Number of last frames that it reads."""
        ...

    @property
    def least(self) -> int:
        """Number of frames that it needs."""
        ...

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
        ages: Sequence[float] | None = None,
    ) -> Forecast:
        """Forecast the frames that follow.

        Parameters
        ----------
        rain : ndarray, (time, y, x) float32
            Rain rate in mm h-1, oldest first; NaN is missing.
        leads : int
            Number of frames to forecast.
        spacing_km : float
            Distance of the grid's points, the same along y and x.
        step_minutes : float
            Time between the frames of the forecast.
        thresholds : sequence of float
            Rain rates in mm h-1 for probabilities, of methods that have them; without any it is
            faster.
        members : int
            Number of members, of methods that have them.
        seed : int
            Seed of random numbers; the same seed gives the same bits on any number of threads.
        ages : sequence of float, optional
            Minutes from each frame to the start of the forecast; by default frames are one step
            apart and the last one is the start. It may be a little later than the start.

        Raises
        ------
        ShapeError
            If ``rain`` has another shape or too few frames.
        SettingsError
            If a setting makes no sense.
        """
        ...


@dataclass(frozen=True)
class Request:
    """The arguments of `Forecaster.forecast`, in one record."""

    rain: Float = field(repr=False)
    leads: int
    _: KW_ONLY
    spacing_km: float
    step_minutes: float
    thresholds: Sequence[float] = THRESHOLDS
    members: int = 0
    seed: int = 0
    ages: Sequence[float] | None = None

    def last(
        self, name: str, least: int, most: int, baseline: float | None
    ) -> tuple[Float, tuple[float, ...]]:
        """Return the frames that a method looks at, checked, and their ages in steps.

        - ``name``, ``least``: see `past`.
        - ``baseline``: minutes between them, as near as there are frames; None takes the last ones.
        """
        rain = self.past(name, least)
        minutes = np.arange(len(rain))[::-1] * self.step_minutes
        if self.ages is not None:
            minutes = np.asarray(self.ages, np.float64)
            falling = minutes.shape == rain.shape[:1] and (np.diff(minutes) < 0).all()
            if not falling or minutes[-1] <= -self.step_minutes:
                raise SettingsError(
                    f"{name}: expected falling ages of {len(rain)} frames, found {self.ages!r}."
                )
        chosen = apart(minutes.tolist(), most, baseline)
        return rain[chosen], tuple((minutes[chosen] / self.step_minutes).tolist())

    def past(self, name: str, least: int) -> Float:
        """Return the past frames as float32, checked; negative rates, which some files have, are 0.

        Raises ShapeError unless ``rain`` is (time >= least, y, x). Raises SettingsError if there is
        no lead, or the spacing or the step is not positive.
        """
        rain = np.asarray(self.rain, np.float32)
        if rain.ndim != 3 or len(rain) < least:
            raise ShapeError(
                f"{name}: expected past frames of shape (time >= {least}, y, x), found "
                f"{rain.shape}."
            )
        if self.leads < 1:
            raise SettingsError(f"{name}: leads must be at least 1 frame, found {self.leads!r}.")
        for setting in ("spacing_km", "step_minutes"):
            if not (value := getattr(self, setting)) > 0:
                raise SettingsError(f"{name}: {setting} must be positive, found {value!r}.")
        return np.maximum(rain, np.float32(0))


def frames_read(forecaster: Forecaster, step_minutes: float) -> int:
    """Return how many frames, one step apart, a forecaster looks back.

    Examples
    --------
    >>> from nowcast.forecasters.sprog import Sprog
    >>> [frames_read(Sprog(), minutes) for minutes in (2, 5, 10, 15)]
    [11, 5, 3, 3]
    """
    return frames_back(step_minutes, forecaster.n_in, getattr(forecaster, "baseline", None))


@runtime_checkable
class EachLead(Protocol):
    """A forecaster that yields lead times one by one, so that large grids fit into memory.

    A subclass defines ``each_lead``, and gets `forecast` from it.
    """

    def each_lead(self, rain: Float, leads: int, **settings: Any) -> Iterator[Forecast]:
        """Yield `Forecaster.forecast`'s result, one lead time after the other."""
        ...

    def forecast(self, rain: Float, leads: int, **settings: Any) -> Forecast:
        """Forecast; see `Forecaster.forecast`."""
        return joined(self.each_lead(rain, leads, **settings), leads)


def check_thresholds(name: str, thresholds: Sequence[float]) -> tuple[float, ...]:
    """Return thresholds in mm h-1 as an increasing tuple.

    Raises SettingsError if one is not positive and finite.
    """
    if not all(0 < t < np.inf for t in thresholds):
        raise SettingsError(
            f"{name}: thresholds must be above 0 mm/h, found {tuple(thresholds)!r}."
        )
    return tuple(sorted({float(t) for t in thresholds}))
