"""A case: one forecast and the observed rain around it, in memory, for the server."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.forecasters.dataset import forecast_of
from nowcast.forecasters.file import open_forecast
from nowcast.forecasters.forecast import Forecast
from nowcast.plot.bare import SCALES, indexed
from nowcast.plot.place import Place
from nowcast.rain.grid import Grid
from nowcast.rain.identity import is_simulated
from nowcast.rain.store import expecting, in_order, open_stored
from nowcast.rain.texts import utc_text
from nowcast.sums.areas import Areas

#: Largest number of hours and frames of observed rain shown before the forecast.
PAST, FRAMES = np.timedelta64(2, "h"), 24
#: Quantiles of the rain rate that are shown if the forecast has members or probabilities.
LEVELS = (0.1, 0.5, 0.9)
#: Least rain rate (mm h-1) that counts as rain, and least probability for its arrival.
WET, LIKELY = 0.1, 0.5

#: Two bytes per number: an error of a thousandth is invisible.
Half = NDArray[np.float16]


@dataclass(frozen=True)
class Case:
    """One forecast with the observed rain before and after its start."""

    name: str  #: A name that changes with any shown content.
    grid: Grid
    start: np.datetime64  #: Time of the last frame that the forecast is made from, UTC.
    leads: NDArray[np.timedelta64]
    rain: Half  #: mm h-1; NaN where missing, as in all fields.
    thresholds: tuple[float, ...]  #: mm h-1, of ``probability`` (threshold, lead, y, x) float16.
    probability: Half
    quantiles: Half | None  #: mm h-1, of `LEVELS`.
    #: Observed rain, mm h-1.
    times: NDArray[np.datetime64]
    observed: Half
    #: Facts on the forecast: method, station, whether it is simulated.
    about: dict[str, Any]
    radar: bool  #: A radar is at x = y = 0.
    notes: tuple[str, ...] = ()  #: Sentences on problems.
    areas: Areas | None = None  #: With names, over which rain is summarised.
    #: Ensembles only: `LEVELS` over the members of an area's mean and maximum, mm h-1.
    area_quantiles: NDArray[np.float32] | None = None
    cells: Path | None = None  #: Where a watch writes the rain cells of this forecast.
    pictures: dict[tuple[str, int], bytes] = field(default_factory=dict, repr=False)
    series: list[dict[str, Any]] = field(default_factory=list, repr=False)
    bodies: dict[str, tuple[bytes, bytes]] = field(default_factory=dict, repr=False)

    @property
    def past(self) -> int:
        """Number of observed frames up to the start, the first ones on the page."""
        return int((self.times <= self.start).sum())

    @property
    def shown(self) -> NDArray[np.datetime64]:
        """Times of the frames on the page: the observed past and the forecast."""
        return np.concatenate([self.times[: self.past], self.start + self.leads])

    @cached_property
    def bounds(self) -> dict[str, float]:
        """Bounds of the grid in degrees."""
        latitude, longitude = self.grid.latitude_longitude()
        bounds = (latitude.min(), latitude.max(), longitude.min(), longitude.max())
        names = ("south", "north", "west", "east")
        return dict(zip(names, (round(float(end), 5) for end in bounds), strict=True))

    @cached_property
    def quantities(self) -> dict[str, tuple[str, Half]]:
        """Quantities with maps by name: their descriptions, and their fields (lead, y, x)."""
        made = {"rain": ("Rain rate", self.rain)}
        for t, fields in zip(self.thresholds, self.probability, strict=True):
            made[f"p{t:g}"] = f"Probability of {t:g} mm/h or more", fields
        if self.quantiles is not None:
            for q, fields in zip(LEVELS, self.quantiles, strict=True):
                made[f"q{100 * q:g}"] = f"Rain rate, {100 * q:g} % quantile", fields
        return made

    def frame(self, quantity: str, n: int) -> Half:
        """Return a map (y, x): rain of any shown frame, or another quantity at a lead time.

        Raises KeyError if there is none.
        """
        _, fields = self.quantities[quantity]
        lead = n - self.past
        if not (0 if quantity == "rain" else self.past) <= n < len(self.shown):
            raise KeyError(quantity)
        return self.observed[n] if lead < 0 else fields[lead]

    @staticmethod
    def scale(quantity: str) -> str:
        """Return the name, in `SCALES`, of a quantity's scale."""
        return "probability" if quantity[0] == "p" else "rain"

    def picture(self, quantity: str, n: int) -> bytes:
        """Return a map of `frame` as indexed PNG; missing cells are half-transparent grey."""
        if (quantity, n) not in self.pictures:
            scale = self.scale(quantity)
            image = indexed(self.frame(quantity, n).astype(np.float32), scale)
            opacity = bytes([0, *[255] * len(SCALES[scale][1]), 170])
            buffer = BytesIO()
            image.save(buffer, "PNG", transparency=opacity, bits=4, compress_level=6)
            self.pictures[quantity, n] = buffer.getvalue()
        return self.pictures[quantity, n]

    def cell(self, latitude: float, longitude: float) -> tuple[int, int]:
        """Return row and column of the cell around a place.

        Raises DataError if the place is outside the grid.
        """
        x, y = self.grid.from_degrees(own_ellipsoid=True)(longitude, latitude)
        row, column = (y - self.grid.y0) / self.grid.dy, (x - self.grid.x0) / self.grid.dx
        if not (-0.5 <= row < self.grid.ny - 0.5 and -0.5 <= column < self.grid.nx - 0.5):
            raise DataError(
                f"expected a place on the map, {self.grid}, found latitude {latitude:g}, "
                f"longitude {longitude:g}"
            )
        return min(round(row), self.grid.ny - 1), min(round(column), self.grid.nx - 1)


def open_case(
    path: Path,
    observed: Path | None,
    areas: Path | None,
    token: str,
    about: dict[str, Any] | None = None,
) -> Case:
    """Read a forecast, the observed rain around it, and areas of interest into memory.

    This takes about 22 bytes per cell and lead time with seven thresholds.

    Raises DataError if the forecast is invalid or incomplete. Observed rain and areas may be
    missing: then a note says so.
    """
    with open_forecast(path) as forecast:
        grid = Grid.from_dataset(forecast, where=str(path))
        start = np.datetime64(forecast["forecast_reference_time"].values.item(), "ns")
        leads = forecast["lead_time"].values
        laid, notes = _areas(areas, grid)
        fields, over_areas = [], []
        for n in range(len(leads)):
            one = _lead(forecast, n, path)
            if laid is not None and one.members is not None:
                over_areas.append(_area_quantiles(laid, one.members[:, 0]))
            fields.append(one)
        thresholds = fields[0].thresholds
        probability = _stacked([one.probability for one in fields])
        quantiles = _stacked(
            [
                None if (one.members is None and one.probability is None) else one.quantiles(LEVELS)
                for one in fields
            ]
        )
        source = str(forecast.attrs.get("source", "forecast"))
        facts = {
            "method": source.split(", from ")[0].removeprefix("nowcast, method "),
            "station": str(forecast.attrs.get("station", "")),
            "simulated": is_simulated(forecast),
        } | (about or {})
        radar = Place.of(forecast).radar
        rain = np.concatenate([one.rain for one in fields]).astype(np.float16)
    times, frames, of_observed = _observed(observed, grid, start, start + leads[-1])
    notes = (*of_observed, *notes)
    name = hashlib.sha256(f"{token} {times.tolist()} {notes}".encode()).hexdigest()[:16]
    if probability is None:
        probability = np.empty((0, *rain.shape), np.float16)
    cells = path.parent.parent / "cells" / f"{path.stem}.geojson"
    return Case(
        name, grid, start, leads, rain, thresholds, probability, quantiles, times, frames, facts,
        radar, notes, laid, np.stack(over_areas) if over_areas else None,
        cells if path.parent.name == "forecasts" else None,
    )  # fmt: skip


def _areas(path: Path | None, grid: Grid) -> tuple[Areas | None, tuple[str, ...]]:
    """Return areas, or a note on why there are none."""
    try:
        return None if path is None else Areas.read(path, grid), ()
    except DataError as error:
        return None, (str(error).replace(str(path), getattr(path, "name", "")),)


def _area_quantiles(areas: Areas, members: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return quantiles over members (member, y, x) of means and maxima, (area, level, 2)."""
    both = np.stack([areas.mean(members)[0], areas.maximum(members)], axis=-1)
    return np.moveaxis(np.quantile(both, LEVELS, axis=0), 0, 1).astype(np.float32)


def _lead(forecast: xr.Dataset, n: int, path: Path) -> Forecast:
    """Read one lead time."""
    with expecting(path, "a whole forecast", "make it anew"):
        return forecast_of(forecast.isel(lead_time=slice(n, n + 1)))


def _stacked(parts: list[NDArray[np.float32] | None]) -> Half | None:
    """Return lead times stacked to fields (n, lead, y, x)."""
    arrays = [part.astype(np.float16) for part in parts if part is not None]
    return np.concatenate(arrays, axis=1) if len(arrays) == len(parts) else None


def _observed(
    path: Path | None, grid: Grid, start: np.datetime64, last: np.datetime64
) -> tuple[NDArray[np.datetime64], Half, tuple[str, ...]]:
    """Return the frames around a forecast, or a note on why there are none."""
    none = np.empty(0, start.dtype), np.empty((0, *grid.shape), np.float16)
    if path is None:
        return *none, ()
    try:
        with open_stored(path) as stored:
            rain = in_order(stored)["rain_rate"]
            if not Grid.from_dataset(stored, where=str(path)).matches(grid):
                return *none, (f"{path.name}: observed rain is on another grid, and not shown",)
            times = rain["time"].values
            wanted = np.flatnonzero((times >= start - PAST) & (times <= last))
            wanted = wanted[max((times[wanted] <= start).sum() - FRAMES, 0) :]
            if not (times[wanted] <= start).any():
                note = f"{path.name}: observed rain has nothing up to {utc_text(start)}"
                return *none, (note,)
            return times[wanted], rain[wanted].values.astype(np.float16), ()
    except (DataError, OSError, ValueError, RuntimeError, KeyError) as error:
        sentence = str(error).replace(str(path), path.name)
        return *none, (f"observed rain cannot be read: {sentence}",)
