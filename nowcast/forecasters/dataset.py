"""A forecast as a Dataset with CF attributes: what ``nowcast predict`` writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nowcast.forecasters.forecast import Forecast
from nowcast.rain.cf import CONVENTIONS, RAIN_RATE, history_line
from nowcast.rain.identity import is_simulated
from nowcast.rain.store import lead_step
from nowcast.rain.texts import utc_text


def forecast_dataset(
    rain: xr.Dataset,
    index: int,
    forecast: Forecast | NDArray[np.float32],
    method: str,
    *,
    first: int = 1,
) -> xr.Dataset:
    """Describe a forecast that was made from the frames of a store up to ``index``.

    - ``rain``: the rain store.
    - ``forecast`` (lead, y, x).
    - ``method``: for the attribute ``source``.
    - ``first``: the first lead of the forecast, in steps.
    - returns: ``rain_rate (lead_time, y, x)``; where the forecast has them,
      ``exceedance_probability (threshold, lead_time, y, x)``, ``event_probability (threshold,
      lead_time)`` and ``rain_rate_members (realization, lead_time, y, x)``.
    """
    if not isinstance(forecast, Forecast):
        forecast = Forecast(forecast)
    step = lead_step(rain)
    lead = np.arange(first, first + len(forecast.rain)) * step
    reference = rain["time"].values[index]
    seconds = {"units": "seconds since 1970-01-01 00:00:00", "calendar": "standard"}
    coordinates: dict[str, Any] = {name: rain[name] for name in ("y", "x", "latitude", "longitude")}
    variables: dict[str, Any] = {
        "rain_rate": (
            ("lead_time", "y", "x"),
            forecast.rain,
            RAIN_RATE | {"long_name": "forecast rain rate"},
        ),
        "crs": rain["crs"],
    }
    if forecast.probability is not None:
        coordinates["threshold"] = (
            "threshold",
            np.asarray(forecast.thresholds),
            {
                "standard_name": "rainfall_rate",
                "long_name": "rain rate that is reached",
                "units": "mm h-1",
            },
        )
        variables["exceedance_probability"] = (
            ("threshold", "lead_time", "y", "x"),
            forecast.probability,
            {
                "long_name": "probability that the rain rate reaches the threshold",
                "units": "1",
                "grid_mapping": "crs",
            },
        )
        if forecast.event_probability is not None:
            variables["event_probability"] = (
                ("threshold", "lead_time"),
                forecast.event_probability,
                {
                    "long_name": "probability from which on the threshold is forecast to be "
                    "reached: where the expected critical success index is largest",
                    "units": "1",
                },
            )
    if forecast.members is not None:
        coordinates["realization"] = (
            "realization",
            np.arange(len(forecast.members), dtype=np.int32),
            {"standard_name": "realization", "long_name": "number of the member", "units": "1"},
        )
        variables["rain_rate_members"] = (
            ("realization", "lead_time", "y", "x"),
            forecast.members,
            RAIN_RATE | {"long_name": "forecast rain rate of a member"},
        )
    dataset = xr.Dataset(
        variables,
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
            "station": rain.attrs.get("station", ""),
            "source": f"{method}, from {rain.attrs.get('source', 'weather radar')}",
            "history": f"{history_line('predict')}\n{rain.attrs.get('history', '')}".strip(),
            "references": "Seed (2003), J. Appl. Meteor. 42, 381-388; "
            "Shi et al. (2015), arXiv:1506.04214",
        },
    )
    if is_simulated(rain):
        dataset.attrs["simulated"] = 1
    return dataset


def forecast_of(dataset: xr.Dataset) -> Forecast:
    """Return the forecast that `forecast_dataset` described."""

    def values(name: str) -> Any:
        return dataset[name].values.astype(np.float32, copy=False) if name in dataset else None

    probability = values("exceedance_probability")
    thresholds = () if probability is None else tuple(dataset["threshold"].values.tolist())
    return Forecast(
        values("rain_rate"), thresholds, probability, values("rain_rate_members"),
        values("event_probability"),
    )  # fmt: skip
