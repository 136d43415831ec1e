"""An archive for verification: its starts, at common valid times, and its leads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError
from nowcast.model.split import minutes
from nowcast.rain.grid import mean_spacing

Schedule = tuple[NDArray[np.intp], NDArray[np.bool_]]
#: Fraction of a step by which scans may start early or late.
TOLERANCE = 0.5


def schedule(
    time: NDArray[np.datetime64],
    n_in: int,
    leads: Sequence[int],
    step: np.timedelta64,
    *,
    every: int = 1,
) -> Schedule:
    """Choose starts, and the valid times at which every lead is scored.

    Skill depends on the weather of the valid time. If leads were scored at different times, a curve
    of skill by lead would show that, too. So a time counts only if forecasts of all leads reach it.
    Starts at the end of a run of frames are scored at their short leads only.

    - ``time`` (time,): times of the frames, increasing.
    - ``n_in``: number of input frames.
    - ``leads``: leads that are scored, in frames, increasing.
    - ``step``: time step of the frames.
    - ``every``: frames between two starts, a divisor of all leads.
    - returns ``starts`` (start,): index of the first frame to forecast.
    - returns ``scored`` (start, lead): whether the start is scored at each lead; each start is
      scored at one lead or more.

    Examples
    --------
    >>> minutes = 5 * np.arange(8)
    >>> time = np.datetime64("2010-08-26T00:00") + minutes * np.timedelta64(1, "m")
    >>> starts, scored = schedule(time, 2, [1, 2, 3], np.timedelta64(5, "m"))
    >>> starts
    array([2, 3, 4, 5, 6, 7])
    >>> scored.astype(int)
    array([[0, 0, 1],
           [0, 1, 1],
           [1, 1, 1],
           [1, 1, 1],
           [1, 1, 0],
           [1, 0, 0]])
    """
    ahead, last = np.asarray(leads), len(time) - 1
    first = valid_starts(time, n_in, 1, step, tolerance=TOLERANCE)
    chosen = np.zeros(len(time), bool)
    run_of = np.zeros(len(time), np.intp)  # from 1 on
    runs = np.split(first, np.flatnonzero(np.diff(first) > 1) + 1)
    for number, frames in enumerate(runs, start=1):
        chosen[frames[::every]] = True
        run_of[frames] = number
    # A valid time is common when each lead reaches it from a start in the same run.
    before = np.arange(len(time))[:, np.newaxis] - ahead + 1
    start = np.maximum(before, 0)
    reached = (before >= 0) & chosen[start] & (run_of[start] == run_of[:, np.newaxis])
    common = reached.all(1) & (run_of > 0)
    starts = np.flatnonzero(chosen)
    valid = starts[:, np.newaxis] + ahead - 1
    at = np.minimum(valid, last)
    scored = (valid <= last) & common[at] & (run_of[at] == run_of[starts][:, np.newaxis])
    used = scored.any(1)
    return starts[used], scored[used]


def own_times(
    time: NDArray[np.datetime64],
    n_in: int,
    leads: Sequence[int],
    step: np.timedelta64,
    *,
    every: int,
) -> Schedule:
    """Choose starts that are scored at all leads, so that valid times differ by lead.

    It is for starts that are too far apart for common valid times; parameters and result are those
    of `schedule`.
    """
    starts = valid_starts(time, n_in, max(leads), step, stride=every, tolerance=TOLERANCE)
    return starts, np.ones((len(starts), len(leads)), bool)


def valid_starts(
    time: NDArray[np.datetime64],
    n_in: int,
    n_out: int,
    step: np.timedelta64,
    *,
    stride: int = 1,
    tolerance: float = 0.1,
) -> NDArray[np.intp]:
    """Find the frames at which a forecast can start and be verified.

    A start ``s`` is the first frame to forecast: frames ``s - n_in ... s - 1`` are the input, and
    ``s ... s + n_out - 1`` are compared. All have to follow each other by ``step``, except for the
    seconds by which scans start early or late; a gap is never bridged.

    Parameters
    ----------
    time : ndarray, (time,) datetime64
        Times of the frames, increasing.
    n_in, n_out : int
        Number of input frames and of forecast frames.
    step : timedelta64
        Time step of the frames.
    stride : int
        Least distance between two starts in frames. With ``n_in + n_out`` cases share no frame;
        with 1 every start is used.
    tolerance : float
        Largest deviation of two frames' distance from ``step``, as a fraction of it; up to 0.5.

    Returns
    -------
    ndarray, (starts,) intp
        Indices, increasing; empty when no run of frames is long enough.

    Raises
    ------
    DataError
        If the times do not increase.
    SettingsError
        If ``n_in``, ``n_out``, ``step`` or ``stride`` is not positive, or ``tolerance`` is not from
        0 to 0.5.

    Examples
    --------
    >>> minutes = np.array([0, 5, 10, 15, 25, 30, 35, 40])
    >>> time = np.datetime64("2010-08-26T00:00") + minutes * np.timedelta64(1, "m")
    >>> valid_starts(time, n_in=2, n_out=1, step=np.timedelta64(5, "m"))
    array([2, 3, 6, 7])
    """
    for name, value in (("n_in", n_in), ("n_out", n_out), ("stride", stride)):
        if value < 1:
            raise SettingsError(f"valid_starts: {name} must be at least 1, found {value!r}.")
    if not step > np.timedelta64(0, "ns"):
        raise SettingsError(f"valid_starts: step must be positive, found {step!r}.")
    if not 0 <= tolerance <= 0.5:
        raise SettingsError(
            f"valid_starts: tolerance must be from 0 to 0.5 of a step, found {tolerance!r}."
        )
    steps = np.diff(np.asarray(time)).astype("timedelta64[ns]").astype(np.int64)
    if (steps <= 0).any():
        at = int(np.argmax(steps <= 0)) + 1
        raise DataError(
            f"valid_starts: expected times that increase, found {time[at]} after {time[at - 1]} "
            f"at frame {at}: sort the frames and drop repeated ones."
        )
    wanted = int(step.astype("timedelta64[ns]").astype(np.int64))
    follows = np.abs(steps - wanted) <= tolerance * wanted
    # broken[i] counts the gaps before frame i: frames with equal counts are in one run.
    broken = np.concatenate([[0], np.cumsum(~follows)])
    frames = n_in + n_out
    if len(broken) < frames:
        return np.empty(0, np.intp)
    first = np.flatnonzero(broken[frames - 1 :] == broken[: len(broken) - frames + 1])
    starts: list[int] = []
    for start in (first + n_in).tolist():
        if not starts or start - starts[-1] >= stride:
            starts.append(start)
    return np.array(starts, np.intp)


@dataclass(frozen=True)
class Archive:
    """Frames of one grid and step, and the forecasts to score."""

    number: int  #: Position in the sequence of arrays.
    rain: xr.DataArray  #: (time, y, x)
    time: NDArray[np.datetime64]  #: (time,)
    n_in: int  #: Number of input frames.
    leads: list[int]  #: Leads that are scored, in frames of this archive.
    #: See `nowcast.verification.archive.schedule`.
    starts: NDArray[np.intp]
    scored: NDArray[np.bool_]
    spacing_km: float
    step_minutes: float
    longest_step: np.timedelta64  #: Longest step of all archives; leads are its multiples.
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
        """Return the archives; ``leads`` and ``every`` are in frames of the longest step.

        ``n_in`` returns the number of input frames for a step in minutes.

        Raises DataError and SettingsError as `nowcast.verification.verify` does.
        """
        long = [n for n, array in enumerate(arrays) if array.sizes.get("time", 2) > 1]
        steps = {n: _step(arrays[n]) for n in long}
        longest = max(steps.values(), default=np.timedelta64(0))
        made = []
        for number, step in steps.items():
            array, times = arrays[number], longest / step
            if times != round(times):
                raise DataError(
                    f"verify: expected steps that divide the longest, {minutes(longest):g} min, "
                    f"found one of {minutes(step):g} min; verify such archives apart."
                )
            spacing = mean_spacing(array, "verify")
            ahead = [lead * round(times) for lead in leads]
            time = array["time"].to_numpy()
            plan = schedule if common else own_times
            read = n_in(minutes(step))
            starts, scored = plan(time, read, ahead, step, every=every * round(times))
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
                f"verify: expected the input of a forecast and {max(leads)} consecutive frames "
                f"after it, found no such run in {frames} frames; take another stretch (--from, "
                "--to), shorter forecasts (--lead) or more data"
            )
        return made

    @property
    def cases_sharing_frames(self) -> int:
        """Largest number of consecutive cases that share frames with the first of them."""
        frames = self.n_in + self.leads[-1]
        after = np.searchsorted(self.starts, self.starts + frames)
        return int((after - np.arange(len(self.starts))).max())

    def frames(self, start: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the frames before a start and the frames at its leads, NaN beyond the end."""
        last = min(start + self.leads[-1], len(self.time))
        frames = self.rain.isel(time=slice(start - self.n_in, last)).to_numpy()
        frames = frames.astype(np.float32, copy=False)
        observed = np.full((len(self.leads), *frames.shape[1:]), np.nan, np.float32)
        for position, lead in enumerate(self.leads):
            if start + lead <= last:
                observed[position] = frames[self.n_in + lead - 1]
        return frames[: self.n_in], observed

    def alone(self, start: int) -> Self:
        """Return the frames of one start, from `n_in` before it, as a separate archive."""
        part = slice(start - self.n_in, min(start + self.leads[-1], len(self.time)))
        rain = self.rain.isel(time=part).reset_coords(drop=True)
        return replace(
            self, rain=rain, time=self.time[part], starts=self.starts[:0], scored=self.scored[:0]
        )


def _step(rain: xr.DataArray) -> np.timedelta64:
    """Return the time step in ns, rounded to minutes: scans start some seconds early or late."""
    if rain.dims != ("time", "y", "x") or "x" not in rain.coords or "y" not in rain.coords:
        raise DataError(
            "verify: expected rain (time, y, x) with coordinates y and x in m, found dimensions "
            f"{rain.dims} with coordinates {tuple(rain.coords)}; open a store with open_rain"
        )
    time = rain["time"].to_numpy()
    steps = np.diff(time).astype("timedelta64[ns]").astype(np.int64)
    second = 1_000_000_000
    unit = 60 * second if np.median(steps) >= 60 * second else second
    return np.timedelta64(max(unit, round(float(np.median(steps)) / unit) * unit), "ns")


def _windows(scales: Sequence[float], spacing: float, shape: Sequence[int]) -> list[int]:
    """Return the sides of the FSS windows in pixels."""
    windows = [max(1, round(scale * 1000 / spacing)) for scale in scales]
    largest = min(shape) * spacing / 1000
    for scale, window in zip(scales, windows, strict=True):
        if not (scale > 0 and window <= min(shape)):
            raise SettingsError(
                f"verify: scales must be above 0 and at most the {largest:g} km of the grid, "
                f"found {scale:g} km; leave it out of --scales"
            )
    return windows
