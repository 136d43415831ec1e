"""Answers of the server in JSON: frames, the latest forecast, a point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nowcast.web.case import LEVELS, LIKELY, WET
from nowcast.web.picture import legend, scale_of

if TYPE_CHECKING:
    from nowcast.web.case import Case


def iso(time: np.datetime64) -> str:
    """Return a time as ISO 8601 in UTC, such as 2020-06-01T00:10:00Z."""
    return f"{time.astype('datetime64[s]')}Z"


def frames(case: Case) -> dict[str, Any]:
    """Return times, quantities and scales, with which the page shows the maps."""
    first = {name: 0 if name == "rain" else case.past for name in case.quantities()}
    return {
        "case": case.name,
        "start": iso(case.start),
        "times": [iso(time) for time in case.shown],
        "observed": case.past,
        "quantities": [
            {"name": name, "title": title, "scale": scale_of(name), "first": first[name]}
            for name, title in case.quantities().items()
        ],
        "thresholds": list(case.thresholds),
        "bounds": case.bounds,
        "scales": legend(),
        "notes": list(case.notes),
        **case.about,
    }


def latest(case: Case, status: dict[str, Any]) -> dict[str, Any]:
    """Return start, lead times, method and grid of the newest forecast."""
    grid = case.grid
    return {
        "start": iso(case.start),
        "times": [iso(time) for time in case.start + case.leads],
        "lead_minutes": _minutes(case.leads),
        "units": {"rain_rate": "mm h-1", "exceedance_probability": "1"},
        "thresholds": list(case.thresholds),
        "quantiles": [] if case.quantiles is None else list(LEVELS),
        "grid": {
            "crs": grid.projection.to_wkt(),
            "shape": list(grid.shape),
            "spacing_metres": [grid.dy, grid.dx],
            "bounds": case.bounds,
        },
        "notes": list(case.notes),
        **case.about,
        **({"status": status} if status else {}),
    }


def point(case: Case, latitude: float, longitude: float) -> dict[str, Any]:
    """Return observed and forecast rain at a place.

    Raises
    ------
    DataError
        When it is outside of the grid.
    """
    row, column = case.cell(latitude, longitude)

    def at(fields: NDArray[np.float16]) -> list[float | None]:
        """Return a number for each field, None where it is missing."""
        numbers = fields[:, row, column].astype(float)
        return [round(number, 4) if np.isfinite(number) else None for number in numbers.tolist()]

    forecast: list[dict[str, Any]] = [
        {"time": iso(case.start + lead), "lead_minutes": minutes, "rain_rate": rate}
        for lead, minutes, rate in zip(case.leads, _minutes(case.leads), at(case.rain), strict=True)
    ]
    for name, keys, fields in (
        ("quantiles", LEVELS, case.quantiles),
        ("exceedance_probability", case.thresholds, case.probability),
    ):
        for key, stacked in zip(keys, () if fields is None else fields, strict=False):
            for entry, value in zip(forecast, at(stacked), strict=True):
                entry.setdefault(name, {})[f"{key:g}"] = value
    observed = [
        {"time": iso(time), "rain_rate": rate}
        for time, rate in zip(case.times, at(case.observed), strict=True)
    ]
    return {
        "latitude": latitude,
        "longitude": longitude,
        "cell": {"row": row, "column": column},
        "start": iso(case.start),
        "units": {"rain_rate": "mm h-1", "quantiles": "mm h-1", "exceedance_probability": "1"},
        "observed": observed,
        "forecast": forecast,
        "arrival": _arrival(forecast, observed[: case.past]),
        "notes": list(case.notes),
        **case.about,
    }


def _arrival(forecast: list[dict[str, Any]], past: list[dict[str, Any]]) -> dict[str, Any]:
    """Say whether it rains, and the first lead time at which it probably does.

    By the probability of the lowest threshold where there is one, else by the field.
    """
    lowest = next(iter(forecast[0].get("exceedance_probability", {})), None)
    arrival: dict[str, Any] = {
        "threshold": WET if lowest is None else float(lowest),
        "raining": bool(past and (past[-1]["rain_rate"] or 0) >= WET),
        "time": None,
        "lead_minutes": None,
        "probability": None,
        "known": any(entry["rain_rate"] is not None for entry in forecast),
    }
    for entry in forecast:
        chance = None if lowest is None else entry["exceedance_probability"][lowest]
        wet = (entry["rain_rate"] or 0) >= WET if lowest is None else (chance or 0) >= LIKELY
        if wet:
            moment = {"time": entry["time"], "lead_minutes": entry["lead_minutes"]}
            return arrival | moment | {"probability": chance}
    return arrival


def _minutes(leads: NDArray[np.timedelta64]) -> list[float]:
    return [float(m) for m in leads / np.timedelta64(1, "m")]
