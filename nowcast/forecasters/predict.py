"""A forecast from the last frames before a time, as a Dataset with CF attributes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.model.model import NowcastModel, minutes
from nowcast.model.train import frames_ahead, grid_spacing
from nowcast.rain.cf import CONVENTIONS, RAIN_RATE, history_line
from nowcast.rain.simulated import is_simulated
from nowcast.rain.store import path_of, time_step
from nowcast.rain.utc import parse_utc, utc_text

if TYPE_CHECKING:
    import xarray as xr

LATEST = "latest"


def find_time(rain: xr.Dataset, at: str) -> int:
    """Return the index of a time in a rain store.

    Parameters
    ----------
    at : str
        ISO 8601, UTC unless it says otherwise, or "latest".

    Raises
    ------
    SettingsError
        When it is not a time.
    DataError
        When the store has no frame of that time.
    """
    time = rain["time"].values
    if at == LATEST:
        return len(time) - 1
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


def frames_before(rain: xr.Dataset, index: int, n_in: int) -> NDArray[np.float32]:
    """Return the ``n_in`` frames that end with ``index``, (n_in, y, x) in mm h-1.

    Raises
    ------
    DataError
        When there are fewer, or they do not follow each other at the regular step.
    """
    time, step = rain["time"].values[: index + 1], time_step(rain)
    if len(time) < n_in:
        raise DataError(
            f"{path_of(rain)}: expected {n_in} frames up to {utc_text(time[-1])}, found {len(time)}"
        )
    last = time[-n_in:]
    for earlier, later in pairwise(last):
        if later - earlier != step:
            raise DataError(
                f"{path_of(rain)}: expected {n_in} frames every {minutes(step):g} min up to "
                f"{utc_text(time[-1])}, found a step of {minutes(later - earlier):g} min from "
                f"{utc_text(earlier)} to {utc_text(later)}"
            )
    frames = rain["rain_rate"].isel(time=slice(index + 1 - n_in, index + 1)).values
    return frames.astype(np.float32, copy=False)


def forecast_dataset(
    rain: xr.Dataset, index: int, forecast: NDArray[np.float32], method: str
) -> xr.Dataset:
    """Describe a forecast (lead_time, y, x) in mm h-1, made from the frames up to ``index``."""
    import xarray as xr

    step = time_step(rain)
    lead = np.arange(1, len(forecast) + 1) * step
    reference = rain["time"].values[index]
    seconds = {"units": "seconds since 1970-01-01 00:00:00", "calendar": "standard"}
    coordinates = {name: rain[name] for name in ("y", "x", "latitude", "longitude")}
    dataset = xr.Dataset(
        {
            "rain_rate": (
                ("lead_time", "y", "x"),
                forecast,
                RAIN_RATE | {"long_name": "forecast rain rate"},
            ),
            "crs": rain["crs"],
        },
        coords={
            "lead_time": (
                "lead_time",
                lead.astype("timedelta64[ns]"),
                {"standard_name": "forecast_period", "long_name": "lead time"},
                {"units": "seconds", "dtype": "int64"},
            ),
            "forecast_reference_time": (
                (),
                reference,
                {
                    "standard_name": "forecast_reference_time",
                    "long_name": "time of the last frame that the forecast is made from",
                },
                {**seconds, "dtype": "int64"},
            ),
            "time": (
                "lead_time",
                reference + lead,
                {"standard_name": "time", "long_name": "time for which the forecast is made"},
                {**seconds, "dtype": "int64"},
            ),
            **coordinates,
        },
        attrs={
            "Conventions": CONVENTIONS,
            "title": f"Rain nowcast from {utc_text(reference)} UTC",
            "institution": rain.attrs.get("institution", "unknown"),
            "source": f"{method}, from {rain.attrs.get('source', 'weather radar')}",
            "history": f"{history_line('predict')}\n{rain.attrs.get('history', '')}".strip(),
            "references": "Shi et al. (2015), arXiv:1506.04214",
        },
    )
    if is_simulated(rain):
        dataset.attrs["simulated"] = 1
    return dataset


def predict(
    model: NowcastModel, rain: xr.Dataset, at: str = LATEST, lead_minutes: float | None = None
) -> xr.Dataset:
    """Forecast rain from the frames of a store up to a time.

    Parameters
    ----------
    model : NowcastModel
    rain : Dataset
        An opened rain store.
    at : str
        Time of the last frame to read, or "latest".
    lead_minutes : float, optional
        How far ahead; without it, as far as the model was trained for.

    Returns
    -------
    Dataset
        ``rain_rate (lead_time, y, x)`` in mm h-1.

    Raises
    ------
    DataError, SettingsError
        When there are no such frames, their grid or step is not the model's, or the lead time is
        beyond what it was trained for.
    """
    model.check_fits(path_of(rain), grid_spacing(rain), time_step(rain))
    count = model.n_out if lead_minutes is None else frames_ahead(lead_minutes, model.step)
    if count > model.n_out:
        raise DataError(
            f"--lead: the model was trained for {model.n_out} frames, up to "
            f"{model.n_out * minutes(model.step):g} min, found {lead_minutes:g} min; "
            "train one for a longer lead time"
        )
    index = find_time(rain, at)
    forecast = model(frames_before(rain, index, model.n_in))[:count]
    return forecast_dataset(rain, index, forecast, "ConvLSTM encoder-forecaster (nowcast)")
