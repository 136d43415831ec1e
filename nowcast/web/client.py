"""The interface for programs, as Python has it: ``nowcast.open(url)``."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import xarray as xr

from daskdl.errors import DataError

#: Seconds after which a server that does not answer is given up.
PATIENCE = 30.0


def open(url: str) -> Service:
    """Open the forecasts that ``nowcast serve`` shows.

    Parameters
    ----------
    url : str
        Address of the page, such as ``http://localhost:8080``.

    Returns
    -------
    Service

    Raises
    ------
    DataError
        When no ``nowcast serve`` answers there, or it has no forecast yet.
    """
    service = Service(url)
    service.latest()
    return service


class Service:
    """A running ``nowcast serve``; each call asks it anew.

    Parameters
    ----------
    url : str
        Address of the page.
    """

    def __init__(self, url: str) -> None:
        self.url = url.partition("#")[0].rstrip("/")  # as it is copied from a browser

    def __repr__(self) -> str:
        return f"Service({self.url!r})"

    def latest(self) -> dict[str, Any]:
        """Return start, lead times, method, thresholds, grid and areas of the newest forecast."""
        return self._ask("latest")

    def point(self, latitude: float, longitude: float) -> xr.Dataset:
        """Return observed and forecast rain at a place, in degrees.

        Returns
        -------
        Dataset
            ``rain_rate (lead_time)`` in mm h-1, with the coordinate ``time``, and
            ``observed_rain_rate (observed_time)``. Where the forecast has them ``rain_quantile
            (quantile, lead_time)`` in mm h-1 and ``exceedance_probability (threshold, lead_time)``.
            NaN is missing. Attributes are start, method, and ``arrival_time``: when rain comes.

        Raises
        ------
        DataError
            When the place is outside of the grid, or the server does not answer.
        """
        return _dataset(self._ask("point", lat=latitude, lon=longitude))

    def area(self, name: str) -> xr.Dataset:
        """Return observed and forecast rain in an area that the server was given.

        Returns
        -------
        Dataset
            As of `point`, with ``statistic`` as the last dimension: ``mean`` and ``maximum`` of the
            cells. The mean of probabilities is the share of the area where it is expected, their
            maximum the probability at the likeliest cell.

        Raises
        ------
        DataError
            When there is no such area, or the server does not answer.
        """
        return _dataset(self._ask("area", name=name))

    def areas(self) -> dict[str, Any]:
        """Return all areas as GeoJSON, with the highest forecast and the time of rain in each."""
        return self._ask("area")

    def _ask(self, path: str, **query: Any) -> dict[str, Any]:
        address = f"{self.url}/v1/{path}?{urlencode(query)}".rstrip("?")
        try:
            with urlopen(address, timeout=PATIENCE) as answer:
                body = answer.read()
        except HTTPError as error:
            body = error.read()
            try:
                sentence = json.loads(body)["error"]
            except (ValueError, KeyError, TypeError):
                sentence = f"expected an answer of nowcast serve, found {error}"
            raise DataError(f"{address}: {sentence}") from error
        except (URLError, OSError, ValueError) as error:
            raise DataError(
                f"{address}: expected an address where nowcast serve answers, found none ({error})"
            ) from error
        with suppress(ValueError):
            content = json.loads(body)
            if isinstance(content, dict):
                return content
        raise DataError(
            f"{address}: expected an answer of nowcast serve in JSON, found something else"
        )


def _dataset(answer: dict[str, Any]) -> xr.Dataset:
    forecast, observed = answer["forecast"], answer["observed"]
    last = ("statistic",) if "name" in answer else ()

    def numbers(values: list[Any]) -> np.ndarray:
        rows = [tuple(v.values()) if isinstance(v, dict) else v for v in values]
        return np.array(rows, np.float64).reshape(len(values), *([2] if last else []))

    def times(entries: list[dict[str, Any]]) -> np.ndarray:
        return np.array([e["time"].rstrip("Z") for e in entries], "datetime64[ns]")

    rates = {"units": "mm h-1"}
    made = xr.Dataset(
        {
            "rain_rate": (("lead_time", *last), numbers([e["rain_rate"] for e in forecast]), rates),
            "observed_rain_rate": (
                ("observed_time", *last), numbers([e["rain_rate"] for e in observed]), rates
            ),
        },
        {
            "lead_time": [np.timedelta64(round(60 * e["lead_minutes"]), "s") for e in forecast],
            "time": ("lead_time", times(forecast)),
            "observed_time": times(observed),
        },
    )  # fmt: skip
    for key, name, dimension, attributes in (
        ("quantiles", "rain_quantile", "quantile", rates),
        ("exceedance_probability", "exceedance_probability", "threshold", {"units": "1"}),
    ):
        if key in forecast[0]:
            levels = list(forecast[0][key])
            stacked = np.stack([numbers([e[key][level] for e in forecast]) for level in levels])
            made[name] = (dimension, "lead_time", *last), stacked, attributes
            made[dimension] = [float(level) for level in levels]
    if last:
        made["statistic"] = ["mean", "maximum"]
    names = ("start", "method", "station", "name", "latitude", "longitude")
    made.attrs = {key: answer[key] for key in names if key in answer}
    made.attrs["raining"] = int(answer["arrival"]["raining"])
    made.attrs["arrival_time"] = answer["arrival"]["time"] or ""
    return made
