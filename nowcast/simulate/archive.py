"""Simulated archives: days of weather of several regimes on a grid, as a rain store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from nowcast.rain.cf import rain_dataset
from nowcast.rain.grid import Grid
from nowcast.rain.store import write_zarr
from nowcast.simulate.regime import draw_regime
from nowcast.simulate.scans import START
from nowcast.simulate.weather import Weather

Float = NDArray[np.float32]

#: Standard deviation of the measured rain rate's error in dB, and mm h-1 that no radar detects.
NOISE_DB, NOT_SEEN = 1.0, 0.08
#: Organised systems per storm: more, since cores without stratiform rain wet little.
SYSTEMS = 1.5
#: Largest calibration error in dB of one of several radars.
CALIBRATION_DB = 1.5
#: Time between the first frames of two days.
DAY = np.timedelta64(24, "h")


@dataclass(frozen=True)
class Days:
    """Days of simulated weather, each seen by one radar."""

    days: int = 1
    hours: float = 24.0  #: Simulated hours of each day.
    step_minutes: int = 10  #: Minutes between frames.
    size: int = 128  #: Cells along each side; the radar's range is half of it.
    spacing: float = 2000.0  #: Metres between cells.
    seed: int = 0  #: Seed of the first day; each other day has the next one.
    organised: bool = False  #: Whether storms go through stages, see `Weather`.
    #: Number of radars that see the days in turn, each with its own calibration
    #: (`CALIBRATION_DB`), noise and range; a single one has no error of calibration.
    radars: int = 1

    def frames(self, day: int) -> Iterator[Float]:
        """Yield the frames (y, x) of a day in mm h-1, with noise; NaN out of range."""
        seed = self.seed + day
        regime = draw_regime(np.random.default_rng((seed, 7)))
        storms = regime.storms * (SYSTEMS if self.organised else 1.0)
        weather = Weather(seed, self.hours * regime.tempo + 1, storms, self.organised)
        gain, noise, reach = self._radar(seed % self.radars)
        axis = (np.arange(self.size) - (self.size - 1) / 2) * self.spacing
        far = np.hypot(axis[:, np.newaxis], axis) > reach * self.size / 2 * self.spacing
        rng = np.random.default_rng((seed, 8))
        near = axis / regime.size
        for number in range(self.per_day):
            seconds = number * self.step_minutes * 60.0 * regime.tempo
            rain = weather.rain_field(seconds, near[np.newaxis], near[:, np.newaxis])
            error = rng.standard_normal(rain.shape, np.float32) * np.float32(noise / 10)
            rain = rain * np.float32(gain * regime.strength) * np.power(np.float32(10), error)
            rain[rain < np.float32(NOT_SEEN)] = 0
            rain[far] = np.nan
            yield rain

    def _radar(self, number: int) -> tuple[float, float, float]:
        """Return the gain of a radar's rain rates, its noise in dB, and fraction of the range."""
        if self.radars == 1:
            return 1.0, NOISE_DB, 1.0
        off, noise, reach = np.random.default_rng((number, 9)).uniform(-1, 1, 3)
        return 10 ** (off * CALIBRATION_DB / 10), NOISE_DB * 2.0**noise, 0.9 + 0.1 * reach

    @property
    def per_day(self) -> int:
        """Number of frames per day."""
        return int(self.hours * 60 // self.step_minutes)


def simulate_archive(
    path: Path, days: Days, progress: Callable[[int, int], None] | None = None
) -> None:
    """Write a rain store of simulated days, with gaps of time unless they have 24 hours.

    Raises SettingsError if the numbers give no archive.
    """
    if (
        not 0 < days.hours <= 24
        or min(days.days, days.per_day, days.size // 16, days.radars) < 1
        or not 0 < days.spacing < 1e6
        or days.seed < 0
    ):
        raise SettingsError(
            "simulate: expected a day, up to 24 h of one frame at least, 16 cells and a seed of 0 "
            f"or more, found {days.days} days of {days.hours:g} h every {days.step_minutes} min, "
            f"{days.size} cells of {days.spacing:g} m and seed {days.seed}; choose others"
        )
    first = np.datetime64(START, "ns")
    steps = np.arange(days.per_day) * np.timedelta64(days.step_minutes, "m")
    rain = np.empty((days.days, days.per_day, days.size, days.size), np.float32)
    for day in range(days.days):
        for frame, made in zip(rain[day], days.frames(day), strict=True):
            frame[...] = made
        if progress is not None:
            progress(day + 1, days.days)
    time = first + np.arange(days.days)[:, np.newaxis] * DAY + steps
    grid = Grid.around(50.0, 5.0, size=(days.size, days.size), spacing=days.spacing)
    described = {
        "title": f"Simulated rain, {days.days} days from seed {days.seed}",
        "source": "simulated weather radar",
        "simulated": 1,
    }
    dataset = rain_dataset(
        grid, time.ravel(), rain.reshape(-1, days.size, days.size), attributes={},
        global_attributes=described,
    )  # fmt: skip
    write_zarr(dataset, path)
