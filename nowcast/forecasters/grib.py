"""Forecasts in GRIB2 (WMO, FM 92): rain rate, probabilities and members on latitude and longitude.

A message for each lead time of the field (product template 4.0), of each member (4.1), and of each
threshold's probability (4.5). Grids of a store may have any projection, of which many have no
template that other programs read: values are those of the nearest cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.files import replacing
from nowcast.radar.maps.grib import load_eccodes
from nowcast.rain.grid import Grid

if TYPE_CHECKING:
    import xarray as xr

ENDING = ".grib2"
#: Metres of a degree of latitude.
DEGREE = 111_195.0
#: Of a mm h-1 in kg m-2 s-1, the unit of GRIB; thresholds are whole 1e-9 of that unit.
RATE, THRESHOLD = 1 / 3600, 9
MISSING = 9999.0
#: Keys of all messages: meteorology, moisture, total precipitation rate, at the ground.
SHARED = {
    "tablesVersion": 32, "discipline": 0, "parameterCategory": 1, "parameterNumber": 52,
    "typeOfGeneratingProcess": 2, "generatingProcessIdentifier": 255, "significanceOfReferenceTime":
    0, "typeOfFirstFixedSurface": 1, "indicatorOfUnitOfTimeRange": 13, "missingValue": MISSING,
    "bitmapPresent": 1, "bitsPerValue": 16,
}  # fmt: skip


def write_grib(forecast: xr.Dataset, path: Path) -> None:
    """Write a forecast as GRIB2, the file whole or not at all.

    - ``forecast``: see `nowcast.forecasters.dataset.forecast_dataset`.
    - ``path``: rain rates are in kg m-2 s-1 there, a 3600th of those in mm h-1, probabilities in
      percent.
    """
    eccodes = load_eccodes()
    latitude, longitude, cells = nearest_cells(Grid.from_dataset(forecast, where=str(path)))
    start = forecast["forecast_reference_time"].values.astype("datetime64[s]").item()
    keys = SHARED | {
        "dataDate": int(f"{start:%Y%m%d}"), "hour": start.hour, "minute": start.minute,
        "second": start.second, "Ni": len(longitude), "Nj": len(latitude),
        "latitudeOfFirstGridPointInDegrees": latitude[0],
        "latitudeOfLastGridPointInDegrees": latitude[-1],
        "longitudeOfFirstGridPointInDegrees": longitude[0] % 360,
        "longitudeOfLastGridPointInDegrees": longitude[-1] % 360,
        "iDirectionIncrementInDegrees": longitude[1] - longitude[0],
        "jDirectionIncrementInDegrees": latitude[0] - latitude[1],
        # 3 is a product of operations, 2 research: what is simulated is a test.
        "productionStatusOfProcessedData": 1 if forecast.attrs.get("simulated") else 0,
    }  # fmt: skip
    with replacing(path) as temporary, temporary.open("wb") as file:
        for others, field in _fields(forecast):
            message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
            try:
                # The template first: other keys are of it.
                template = {"productDefinitionTemplateNumber": others.pop("template")}
                for name, value in (template | keys | others).items():
                    eccodes.codes_set(message, name, value)
                values = np.append(field.ravel(), np.float32(np.nan))[cells]
                values = np.where(np.isfinite(values), values, MISSING).astype(np.float64)
                eccodes.codes_set_values(message, values)
                # Packed anew with its values: those of the sample would not fit the bitmap.
                eccodes.codes_set(message, "packingType", "grid_ccsds")
                eccodes.codes_write(message, file)
            finally:
                eccodes.codes_release(message)


def _fields(forecast: xr.Dataset) -> Iterator[tuple[dict[str, Any], NDArray[np.float32]]]:
    """Give the keys and the field (y, x) of each message."""
    members = forecast.sizes.get("realization", 0)
    thresholds = forecast["threshold"].values.tolist() if "threshold" in forecast else []
    for n, lead in enumerate(forecast["lead_time"].values):
        at = {"forecastTime": round(lead / np.timedelta64(1, "s"))}
        rate = forecast["rain_rate"].isel(lead_time=n).values * np.float32(RATE)
        yield {"template": 0} | at, rate
        for k, threshold in enumerate(thresholds):
            limits = {
                "template": 5, "forecastProbabilityNumber": k + 1,
                "totalNumberOfForecastProbabilities": len(thresholds),
                "probabilityType": 3,  # above the lower limit
                "scaleFactorOfLowerLimit": THRESHOLD,
                "scaledValueOfLowerLimit": round(threshold * RATE * 10**THRESHOLD),
            }  # fmt: skip
            chance = forecast["exceedance_probability"].isel(lead_time=n, threshold=k).values
            yield limits | at, 100 * chance
        for k in range(members):
            one = {
                "template": 1, "typeOfEnsembleForecast": 3, "perturbationNumber": k,
                "numberOfForecastsInEnsemble": members,
            }  # fmt: skip
            field = forecast["rain_rate_members"].isel(lead_time=n, realization=k).values
            yield one | at, field * np.float32(RATE)


def nearest_cells(grid: Grid) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """Return a regular grid of degrees over a grid, and the cell at each of its points.

    - returns ``latitude`` (row,): degrees, from north to south, in steps as long as those of the
      grid.
    - returns ``longitude`` (column,): degrees, from west to east; beyond 180 where the grid crosses
      that meridian.
    - returns ``cells`` (row * column,): positions in a raveled field, -1 outside of the grid.
    """
    import pyproj

    north, east = grid.latitude_longitude()
    middle = float(east[grid.ny // 2, grid.nx // 2])
    east = middle + (east - middle + 180) % 360 - 180  # without a jump
    if grid.projection.is_geographic:
        steps = grid.dy, grid.dx
    else:
        steps = grid.dy / DEGREE, grid.dx / DEGREE / np.cos(np.radians(np.abs(north).mean()))
    counts = [
        max(2, int(np.ceil(np.ptp(degrees) / step - 1e-6)) + 1)
        for degrees, step in ((north, steps[0]), (east, steps[1]))
    ]
    # GRIB keeps millionths of a degree.
    latitude = (north.max() - steps[0] * np.arange(counts[0])).round(6)
    longitude = (east.min() + steps[1] * np.arange(counts[1])).round(6)
    crs = grid.projection
    to_grid = pyproj.Transformer.from_crs(crs.geodetic_crs, crs, always_xy=True)
    x, y = to_grid.transform(*np.meshgrid(longitude, latitude))
    row, column = np.rint((y - grid.y0) / grid.dy), np.rint((x - grid.x0) / grid.dx)
    inside = (row >= 0) & (row < grid.ny) & (column >= 0) & (column < grid.nx)
    cells = np.where(inside, row * grid.nx + column, -1).astype(np.intp)
    return latitude, longitude, cells.ravel()
