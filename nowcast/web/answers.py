"""The server's JSON: frames, the latest forecast, a point, areas, and OGC documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.plot.bare import SCALES
from nowcast.plot.figure import MISSING
from nowcast.web.case import LEVELS, LIKELY, WET

if TYPE_CHECKING:
    from nowcast.sums.areas import Areas
    from nowcast.web.case import Case


_MISSING = (None, {"mean": None, "maximum": None})


def text(content: dict[str, Any]) -> bytes:
    """Return an answer as JSON without spaces."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def iso(time: np.datetime64) -> str:
    """Return a time as ISO 8601 in UTC, such as 2020-06-01T00:10:00Z."""
    return f"{time.astype('datetime64[s]')}Z"


def frames(case: Case) -> dict[str, Any]:
    """Return times, quantities and scales, which the page needs to show the maps."""
    first = {name: 0 if name == "rain" else case.past for name in case.quantities}
    return {
        "case": case.name,
        "start": iso(case.start),
        "times": [iso(time) for time in case.shown],
        "observed": case.past,
        "quantities": [
            {"name": name, "title": title, "scale": case.scale(name), "first": first[name]}
            for name, (title, _) in case.quantities.items()
        ],
        "thresholds": list(case.thresholds),
        "bounds": case.bounds,
        "areas": [] if case.areas is None else list(case.areas.names),
        "scales": {
            name: {
                "levels": [round(e * (100 if unit == "%" else 1), 3) for e in edges],
                "colours": colours,
                "units": unit,
                "missing": MISSING,
            }
            for name, (edges, colours, unit) in SCALES.items()
        },
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
        "areas": [] if case.areas is None else list(case.areas.names),
        "notes": list(case.notes),
        **case.about,
        **({"status": status} if status else {}),
    }


def point(case: Case, latitude: float, longitude: float) -> dict[str, Any]:
    """Return observed and forecast rain at a place.

    Raises DataError if the place is outside the grid.
    """
    row, column = case.cell(latitude, longitude)
    return {
        "latitude": latitude,
        "longitude": longitude,
        "cell": {"row": row, "column": column},
        **series(case, lambda fields: _numbers(fields[:, row, column]), case.quantiles),
        "notes": list(case.notes),
        **case.about,
    }


def area(case: Case, name: str) -> dict[str, Any]:
    """Return observed and forecast rain in an area, mean and maximum of its cells.

    Raises DataError if there is no such area.
    """
    names = case.areas.names if case.areas else ()
    if name not in names:
        known = ", ".join(names) or "none, since no areas were given"
        raise DataError(f"name: expected an area among {known}; found {name!r}")
    inside = _area_series(case)[names.index(name)]
    return {"name": name, **inside, "notes": list(case.notes), **case.about}


def areas(case: Case) -> dict[str, Any]:
    """Return all areas as GeoJSON, with the highest forecast in each and the time of rain."""
    features = []
    names, geometries = (case.areas.names, case.areas.geometries) if case.areas else ((), ())
    for name, geometry, inside in zip(names, geometries, _area_series(case), strict=True):
        forecast = inside["forecast"]
        thresholds = forecast[0].get("exceedance_probability", {})
        most = {
            "rain_rate": _highest([entry["rain_rate"] for entry in forecast]),
            "exceedance_probability": {
                key: _highest([entry["exceedance_probability"][key] for entry in forecast])
                for key in thresholds
            },
        }
        properties = {"name": name, "most": most, "arrival": inside["arrival"]}
        features.append({"type": "Feature", "properties": properties, "geometry": geometry})
    return {"type": "FeatureCollection", "start": iso(case.start), "features": features}


def _area_series(case: Case) -> list[dict[str, Any]]:
    """Return the series of each area; they are computed once."""
    if not case.series and case.areas is not None:
        made = []
        for n in range(len(case.areas.names)):
            place = case.areas.alone(n)

            def both(fields: NDArray[np.float16], place: Areas = place) -> list[Any]:
                mean, highest = place.mean(fields)[0][:, 0], place.maximum(fields)[:, 0]
                pairs = zip(_numbers(mean), _numbers(highest), strict=True)
                return [{"mean": m, "maximum": h} for m, h in pairs]

            # The mean of quantiles over cells is no quantile of the mean; only members give it.
            made.append(series(case, both, None))
            if case.area_quantiles is not None:
                for entry, rates in zip(
                    made[-1]["forecast"], case.area_quantiles[:, n], strict=True
                ):
                    entry["quantiles"] = {
                        f"{level:g}": dict(zip(("mean", "maximum"), _numbers(pair), strict=True))
                        for level, pair in zip(LEVELS, rates, strict=True)
                    }
        case.series[:] = made  # at once: other requests may make them too
    return case.series


def _highest(pairs: list[dict[str, float | None]]) -> dict[str, float | None]:
    """Return the highest mean and the highest maximum, None where all are missing."""
    return {
        key: max((pair[key] or 0.0 for pair in pairs if pair[key] is not None), default=None)
        for key in ("mean", "maximum")
    }


def series(
    case: Case,
    at: Callable[[NDArray[np.float16]], list[Any]],
    quantiles: NDArray[np.float16] | None,
) -> dict[str, Any]:
    """Return observed and forecast rain of a place, one value per time.

    ``at`` returns the values of fields (n, y, x): numbers, or mean and maximum of an area.
    """
    forecast: list[dict[str, Any]] = [
        {"time": iso(case.start + lead), "lead_minutes": minutes, "rain_rate": rate}
        for lead, minutes, rate in zip(case.leads, _minutes(case.leads), at(case.rain), strict=True)
    ]
    for name, keys, fields in (
        ("quantiles", LEVELS, quantiles),
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
        "start": iso(case.start),
        "units": {"rain_rate": "mm h-1", "quantiles": "mm h-1", "exceedance_probability": "1"},
        "observed": observed,
        "forecast": forecast,
        "arrival": _arrival(forecast, observed[: case.past]),
    }


def _arrival(forecast: list[dict[str, Any]], past: list[dict[str, Any]]) -> dict[str, Any]:
    """Return whether it rains, and the first lead time with probable rain.

    The probability of the lowest threshold decides, or the field without one; for an area its
    maximum.
    """

    def number(value: Any) -> float:
        return (value["maximum"] if isinstance(value, dict) else value) or 0.0

    lowest = next(iter(forecast[0].get("exceedance_probability", {})), None)
    arrival: dict[str, Any] = {
        "threshold": WET if lowest is None else float(lowest),
        "raining": bool(past and number(past[-1]["rain_rate"]) >= WET),
        "time": None,
        "lead_minutes": None,
        "probability": None,
        "known": any(entry["rain_rate"] not in _MISSING for entry in forecast),
    }
    for entry in forecast:
        chance = None if lowest is None else number(entry["exceedance_probability"][lowest])
        wet = number(entry["rain_rate"]) >= WET if chance is None else chance >= LIKELY
        if wet:
            moment = {"time": entry["time"], "lead_minutes": entry["lead_minutes"]}
            return arrival | moment | {"probability": chance}
    return arrival


def _numbers(values: NDArray[np.floating]) -> list[float | None]:
    """Return numbers for JSON, None where they are missing."""
    return [
        round(value, 4) if np.isfinite(value) else None for value in values.astype(float).tolist()
    ]


def _minutes(leads: NDArray[np.timedelta64]) -> list[float]:
    return [float(m) for m in leads / np.timedelta64(1, "m")]


SPECIFICATION = "http://www.opengis.net/spec/ogcapi-common"
CONFORMANCE = [f"{SPECIFICATION}-1/1.0/conf/{name}" for name in ("core", "landing-page", "json")]
CONFORMANCE += [f"{SPECIFICATION}-2/1.0/conf/{name}" for name in ("collections", "json")]
CONFORMS = "http://www.opengis.net/def/rel/ogc/1.0/conformance"
CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
GREGORIAN = "http://www.opengis.net/def/uom/ISO-8601/0/Gregorian"


def common(case: Case, server: str) -> dict[str, dict[str, Any]]:
    """Return the documents of a server, whose address ends in a slash, by paths below ``v1/``."""

    def link(relation: str, path: str, title: str, **more: bool) -> dict[str, Any]:
        kind = "application/json"
        return {"href": server + path, "rel": relation, "type": kind, "title": title} | more

    times = [iso(time) for time in case.shown]
    box = [case.bounds[side] for side in ("west", "south", "east", "north")]
    coordinates = {"cellsCount": len(times), "coordinates": times}
    temporal = {"interval": [[times[0], times[-1]]], "trs": GREGORIAN, "grid": coordinates}
    rain = {
        "id": "rain",
        "title": f"Observed and forecast rain {case.about.get('station', '')}".strip(),
        "description": f"From {iso(case.start)}, by {case.about['method']}",
        "crs": [CRS84],
        "extent": {"spatial": {"bbox": [box], "crs": CRS84}, "temporal": temporal},
        "links": [
            link("self", "v1/collections/rain", "this document"),
            link("describedby", "v1/latest", "start, lead times, method, grid"),
            link("data", "v1/point?lat={lat}&lon={lon}", "rain at a place", templated=True),
            link("data", "v1/area", "rain in areas, as GeoJSON"),
        ],
    }
    links = [
        link("self", "v1/", "this document"),
        link("service-desc", "openapi.json", "OpenAPI 3.1"),
        link("service-doc", "api.html", "the same to read") | {"type": "text/html"},
        link(CONFORMS, "v1/conformance", "what it conforms to"),
        link("data", "v1/collections", "the forecast as a collection"),
    ]
    listed = [link("self", "v1/collections", "this document")]
    return {
        "": {"title": "Rain nowcast", "description": "The newest rain forecast", "links": links},
        "conformance": {"conformsTo": CONFORMANCE},
        "collections": {"links": listed, "collections": [rain]},
        "collections/rain": rain,
    }
