"""A forecast from the last frames before a time, as a Dataset with CF attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.forecasters.dataset import forecast_dataset
from nowcast.forecasters.file import write_leads
from nowcast.forecasters.forecast import divided
from nowcast.forecasters.forecaster import EachLead, Forecaster
from nowcast.forecasters.trained import Trained
from nowcast.lagrangian.frames import apart
from nowcast.model.folder import step_for
from nowcast.model.split import frames_ahead, minutes
from nowcast.rain.grid import mean_spacing
from nowcast.rain.identity import path_of
from nowcast.rain.store import check_rain, in_order, lead_step, time_step
from nowcast.rain.texts import parse_utc, utc_text

LATEST = "latest"
#: How far in the future a clock may set a frame for it to be the latest one.
AHEAD = np.timedelta64(1, "h")
#: Minutes ahead unless others are asked for, as near as the step allows.
LEAD_MINUTES = 60.0


def find_time(rain: xr.Dataset, at: str) -> int:
    """Return the index of a time in a rain store.

    - ``at``: ISO 8601, UTC unless it has a zone, or "latest".
    - raises SettingsError when it is not a time.
    - raises DataError when the store has no frame of that time.
    """
    time = rain["time"].values
    if at == LATEST:
        return latest_of(time)
    wanted = parse_utc("--at", at, others=f" or {LATEST!r}")
    # In microseconds, which reach farther than the store's nanoseconds.
    time = time.astype("datetime64[us]")
    nearest = int(np.argmin(np.abs(time - wanted)))
    if time[nearest] != wanted:
        raise DataError(
            f"{path_of(rain)}: expected a frame at {utc_text(wanted)}, found none; the nearest is "
            f"at {utc_text(time[nearest])}, and they run from {utc_text(time[0])} to "
            f"{utc_text(time[-1])}"
        )
    return nearest


def latest_of(times: NDArray[np.datetime64]) -> int:
    """Return the index of the newest of sorted times, without times of a wrong clock.

    A time more than an hour in the future does not count, unless all are.
    """
    past = np.flatnonzero(times <= np.datetime64("now") + AHEAD)
    return int(past[-1]) if len(past) else len(times) - 1


def predict(
    forecaster: Forecaster,
    rain: xr.Dataset,
    at: str = LATEST,
    lead_minutes: float | None = None,
    *,
    method: str = "nowcast",
    say: Callable[[str], None] = lambda _: None,
    **asked: Any,
) -> xr.Dataset:
    """Forecast rain from the frames of a store up to a time.

    - ``forecaster``: see `nowcast.forecasters.registry.forecaster`.
    - ``rain``: an opened rain store.
    - ``at``: time of the last frame to read, or "latest".
    - ``lead_minutes``: how far ahead; without it, as far as a model was trained for, other methods
      an hour.
    - ``method``: how the forecast's source is described.
    - ``**asked``: thresholds, members and seed, see
      `nowcast.forecasters.forecaster.Forecaster.forecast`.
    - ``say``: gets a sentence when a model of another time step is applied to some of the frames.
    - returns: ``rain_rate (lead_time, y, x)`` in mm h-1, and what else the forecaster gives; see
      `nowcast.forecasters.dataset.forecast_dataset`.
    - raises DataError, SettingsError when there are no such frames, cells are oblong beyond
      measure, or what the forecaster raises.
    """
    start = _start(forecaster, rain, at, lead_minutes, say)
    forecast = forecaster.forecast(start.frames(), start.leads, **asked, **start.settings)
    return forecast_dataset(start.rain, start.index, forecast, method)


def predict_to(
    path: Path,
    forecaster: Forecaster,
    rain: xr.Dataset,
    at: str = LATEST,
    lead_minutes: float | None = None,
    *,
    method: str = "nowcast",
    say: Callable[[str], None] = lambda _: None,
    finish: Callable[[xr.Dataset], xr.Dataset] = lambda part: part,
    **asked: Any,
) -> tuple[int, np.datetime64, bool]:
    """Write what `predict` returns to a file, one lead time after the other.

    So a large grid needs the memory of one lead time only, if the forecaster is an `EachLead`.
    For the arguments after the path see `predict`.

    - ``path``: see `nowcast.forecasters.file.write_leads`.
    - ``finish``: given each lead time's forecast, returns the forecast to write.
    - returns: number of lead times, the time of the last frame that was read, and whether it is
      missing everywhere: then so is the forecast.
    """
    start = _start(forecaster, rain, at, lead_minutes, say)
    asked |= start.settings
    frames = start.frames()
    missing = not bool(np.isfinite(frames[-1]).any())
    if isinstance(forecaster, EachLead):
        parts = forecaster.each_lead(frames, start.leads, **asked)
    else:
        parts = divided(forecaster.forecast(frames, start.leads, **asked))
    del frames  # which the forecaster lets go of too

    def described() -> Iterator[xr.Dataset]:
        for number in range(1, start.leads + 1):  # enumerate would keep what it gave last
            part = next(parts)
            yield finish(forecast_dataset(start.rain, start.index, part, method, first=number))
            del part

    write_leads(described(), start.leads, path)
    time: np.datetime64 = start.rain["time"].values[start.index]
    return start.leads, time, missing


#: Minutes between two frames over which motion is still measured, if their step is no longer.
LONGEST_GAP = 30.0


@dataclass(frozen=True)
class _Start:
    """Start of a forecast: the frames of a store that it reads, and its number of leads."""

    rain: xr.Dataset = field(repr=False)
    index: int
    picks: list[int]
    leads: int
    settings: dict[str, Any]

    def frames(self) -> NDArray[np.float32]:
        frames = self.rain["rain_rate"].isel(time=self.picks).values
        return frames.astype(np.float32, copy=False)


def _start(
    forecaster: Forecaster,
    rain: xr.Dataset,
    at: str,
    lead_minutes: float | None,
    say: Callable[[str], None],
) -> _Start:
    """Return the start of `predict`; arguments and errors are its own."""
    check_rain(rain, path_of(rain))
    rain = in_order(rain)
    baseline: float | None = getattr(forecaster, "baseline", None)
    step = time_step(rain) if baseline is None else lead_step(rain)
    spacing = mean_spacing(rain, path_of(rain))
    index = find_time(rain, at)
    if at == LATEST and index + 1 < rain.sizes["time"]:
        say(
            f"{path_of(rain)}: frames from {utc_text(rain['time'].values[index + 1])} on are left "
            "out: they lie in the future"
        )
    if isinstance(forecaster, Trained):
        step, sentence = step_for(forecaster.model, step, str(path_of(rain)))
        if sentence:
            say(sentence)
        rain, index = every_step(rain, index, step)
    if lead_minutes is not None:
        leads = frames_ahead(lead_minutes, step)
    else:
        leads = max(1, int(getattr(forecaster, "lead_minutes", LEAD_MINUTES) / minutes(step) + 0.5))
    settings: dict[str, Any] = {"spacing_km": spacing / 1000, "step_minutes": minutes(step)}
    if baseline is None:
        run = run_before(rain, index, forecaster.least, forecaster.n_in)
        return _Start(rain, index, list(range(index + 1 - run, index + 1)), leads, settings)
    picks = frames_apart(rain, index, forecaster, minutes(step), say)
    scanned = scan_times(rain)
    settings["ages"] = [minutes(rain["time"].values[index] - scanned[k]) for k in picks]
    return _Start(rain, index, picks, leads, settings)


def scan_times(rain: xr.Dataset) -> NDArray[np.datetime64]:
    """Return the times of the frames' scans; without them, the frames' times."""
    name = "scan_time" if "scan_time" in rain else "time"
    return np.asarray(rain[name].values)


def frames_apart(
    rain: xr.Dataset,
    index: int,
    forecaster: Forecaster,
    step_minutes: float,
    say: Callable[[str], None],
) -> list[int]:
    """Return the indices of the frames, up to ``index``, that a forecaster with a baseline reads.

    A gap of up to `LONGEST_GAP` minutes, or half a step more than one, is bridged and named.

    Raises DataError when there are too few without a longer gap.
    """
    time, least = scan_times(rain)[: index + 1], forecaster.least
    gaps = np.array([minutes(gap) for gap in np.diff(time)])
    longest = max(LONGEST_GAP, 1.5 * step_minutes)
    wide = np.flatnonzero(gaps > longest)
    first = int(wide[-1]) + 1 if len(wide) else 0
    if index + 1 - first < least:
        before = "none" if first == 0 else f"a gap of {gaps[first - 1]:g} min before it"
        raise DataError(
            f"{path_of(rain)}: expected {least} frames up to {utc_text(time[-1])} with at most "
            f"{longest:g} min between them, found {before}; choose another --at, or ingest the "
            "scans before it"
        )
    ages = [minutes(time[-1] - one) for one in time[first:]]
    picks = [first + k for k in apart(ages, forecaster.n_in, getattr(forecaster, "baseline", None))]
    if len(gaps) and gaps[-1] > 1.5 * step_minutes:
        say(
            f"{path_of(rain)}: {gaps[-1]:g} min are missing before the last frame, at "
            f"{utc_text(time[-1])}; motion is measured across them"
        )
    return picks


def every_step(rain: xr.Dataset, index: int, step: np.timedelta64) -> tuple[xr.Dataset, int]:
    """Return the frames at whole steps from frame ``index`` on, and its index among them."""
    time = rain["time"].values
    if step == time_step(rain):
        return rain, index
    at_steps = np.flatnonzero((time - time[index]) % step == np.timedelta64(0))
    return rain.isel(time=at_steps), int(np.searchsorted(at_steps, index))


def run_before(rain: xr.Dataset, index: int, least: int, most: int) -> int:
    """Return how many frames, at most ``most``, follow each other regularly up to ``index``.

    Raises DataError when there are fewer than ``least``.
    """
    time, step = rain["time"].values[: index + 1], time_step(rain)
    count = 1
    while count < min(most, len(time)) and time[-count] - time[-count - 1] == step:
        count += 1
    if count < least:
        gap = "none" if count == len(time) else f"a gap from {utc_text(time[-count - 1])} on"
        raise DataError(
            f"{path_of(rain)}: expected {least} frames every {minutes(step):g} min up to "
            f"{utc_text(time[-1])}, found {count} and {gap} before them; choose another --at, or "
            "ingest the scans before them"
        )
    return count
