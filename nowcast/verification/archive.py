"""One of the archives of rain that forecasts are verified on: its starts, leads and windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError
from nowcast.model.split import minutes
from nowcast.rain.grid import mean_spacing
from nowcast.verification.schedule import own_times, schedule

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Archive:
    """Frames of one grid and step, and which forecasts of them are scored."""

    number: int  #: Position among the arrays that were given.
    rain: xr.DataArray  #: (time, y, x)
    time: NDArray[np.datetime64]  #: (time,)
    n_in: int  #: Frames that go in.
    leads: list[int]  #: Leads that are scored, in frames of this archive.
    #: See `nowcast.verification.schedule.schedule`.
    starts: NDArray[np.intp]
    scored: NDArray[np.bool_]
    spacing_km: float
    step_minutes: float
    longest_step: np.timedelta64  #: Of all archives, which leads are multiples of.
    windows: list[int]  #: Sides of the FSS windows in pixels.

    @classmethod
    def of(
        cls,
        arrays: Sequence[xr.DataArray],
        n_in: Callable[[float], int],
        leads: Sequence[int],
        *,
        every: int,
        common: bool,
        scales: Sequence[float],
    ) -> list[Self]:
        """Return the archives; leads and ``every`` in frames of the longest step.

        ``n_in`` gives the number of frames that go in for a step in minutes.

        Raises DataError and SettingsError as `nowcast.verification.verify` does.
        """
        steps = [_step(array) for array in arrays]
        longest = max(steps)
        made = []
        for number, (array, step) in enumerate(zip(arrays, steps, strict=True)):
            times = longest / step
            if times != round(times):
                raise DataError(
                    f"verify: expected steps of which the longest, {minutes(longest):g} min, is a "
                    f"multiple, found one of {minutes(step):g} min; verify such archives apart."
                )
            spacing = mean_spacing(array["y"].to_numpy(), array["x"].to_numpy(), "verify")
            ahead = [lead * round(times) for lead in leads]
            time = array["time"].to_numpy()
            plan = schedule if common else own_times
            read = n_in(minutes(step))
            starts, scored = plan(
                time, read, ahead, step, every=every * round(times), tolerance=0.5
            )
            if len(starts):
                windows = _windows(scales, spacing, array.shape[1:])
                made.append(
                    cls(
                        number, array, time, read, ahead, starts, scored, spacing / 1000,
                        minutes(step), longest, windows,
                    )
                )  # fmt: skip
        if not made:
            frames = sum(array.sizes["time"] for array in arrays)
            raise DataError(
                f"verify: expected {n_in(minutes(longest))} + {max(leads)} consecutive frames at "
                f"least once, found no such start in {frames} frames; take shorter forecasts or "
                "more data."
            )
        return made

    @property
    def cases_sharing_frames(self) -> int:
        """Largest number of consecutive cases that share frames with the first of them."""
        frames = self.n_in + self.leads[-1]
        after = np.searchsorted(self.starts, self.starts + frames)
        return int((after - np.arange(len(self.starts))).max())

    def frames(self, start: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the frames before a start, and those observed at its leads, NaN beyond the end."""
        last = min(start + self.leads[-1], len(self.time))
        frames = self.rain.isel(time=slice(start - self.n_in, last)).to_numpy()
        frames = frames.astype(np.float32, copy=False)
        observed = np.full((len(self.leads), *frames.shape[1:]), np.nan, np.float32)
        for position, lead in enumerate(self.leads):
            if start + lead <= last:
                observed[position] = frames[self.n_in + lead - 1]
        return frames[: self.n_in], observed

    def alone(self, start: int) -> Self:
        """Return the frames that one start needs, `n_in` before it, as an archive of their own."""
        part = slice(start - self.n_in, min(start + self.leads[-1], len(self.time)))
        rain = self.rain.isel(time=part).reset_coords(drop=True)
        return replace(
            self, rain=rain, time=self.time[part], starts=self.starts[:0], scored=self.scored[:0]
        )


def _step(rain: xr.DataArray) -> np.timedelta64:
    """Time step in ns: scans start some seconds early or late, the step is of whole minutes."""
    if rain.dims != ("time", "y", "x") or "x" not in rain.coords or "y" not in rain.coords:
        raise DataError(
            "verify: expected rain (time, y, x) with coordinates y and x in m, found dimensions "
            f"{rain.dims} with coordinates {tuple(rain.coords)}; open a store with open_rain"
        )
    time = rain["time"].to_numpy()
    if len(time) < 2:
        raise DataError(
            f"verify: expected at least two frames to have a step, found {len(time)}; take more "
            "data."
        )
    steps = np.diff(time).astype("timedelta64[ns]").astype(np.int64)
    second = 1_000_000_000
    unit = 60 * second if np.median(steps) >= 60 * second else second
    return np.timedelta64(max(unit, round(float(np.median(steps)) / unit) * unit), "ns")


def _windows(scales: Sequence[float], spacing: float, shape: Sequence[int]) -> list[int]:
    """Sides of the FSS windows in pixels."""
    windows = [max(1, round(scale * 1000 / spacing)) for scale in scales]
    largest = min(shape) * spacing / 1000
    for scale, window in zip(scales, windows, strict=True):
        if not (scale > 0 and window <= min(shape)):
            raise SettingsError(
                f"verify: scales must be above 0 and at most the {largest:g} km of the grid, "
                f"found {scale:g} km; leave it out of --scales"
            )
    return windows
