"""Forecasts for other programs: Cloud-optimised GeoTIFF, and GRIB2 on latitude and longitude."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskdl.errors import needed
from daskdl.files import replacing
from nowcast.radar.maps.grib import load_eccodes
from nowcast.rain.grid import Grid
from nowcast.rain.texts import utc_text


def require_rasterio() -> None:
    """Raise an error that names the extra if rasterio is missing."""
    with needed(
        "Cloud-optimised GeoTIFF needs rasterio ({error}); pip install 'daskdl[nowcast,cog]'"
    ):
        import rasterio  # noqa: F401


def write_cog(forecast: xr.Dataset, path: Path) -> list[Path]:
    """Write a forecast as Cloud-optimised GeoTIFF, north up, a band for each lead time.

    - ``forecast``: see `nowcast.forecasters.dataset.forecast_dataset`.
    - ``path``: file of the rain rate in mm h-1; probabilities to reach 1 mm h-1 go to
      ``<stem>_probability_1mmh.tif`` next to it, and so on.
    - returns: the files, each whole or not there; the rain rate's is written last.
    """
    fields = {}
    if "exceedance_probability" in forecast:
        for threshold in forecast["threshold"].values.tolist():
            name = path.with_name(f"{path.stem}_probability_{threshold:g}mmh.tif")
            fields[name] = forecast["exceedance_probability"].sel(threshold=threshold)
    fields[path] = forecast["rain_rate"]
    for file, field in fields.items():
        with replacing(file) as temporary:
            _write(forecast, field, temporary)
    return list(fields)


def _write(forecast: xr.Dataset, field: xr.DataArray, path: Path) -> None:
    import rasterio
    from rasterio.shutil import copy

    y, x = forecast["y"].values, forecast["x"].values
    dy, dx = float(y[1] - y[0]), float(x[1] - x[0])
    bands: NDArray[np.float32] = field.values[:, ::-1]  # rows of a store go north
    profile: dict[str, Any] = {
        "driver": "GTiff", "dtype": "float32", "count": len(bands), "height": len(y),
        "width": len(x), "nodata": float("nan"), "crs": forecast["crs"].attrs["crs_wkt"],
        "transform": rasterio.Affine(dx, 0, x[0] - dx / 2, 0, -dy, y[-1] + dy / 2),
    }  # fmt: skip
    copied = ("title", "source", "institution", "Conventions", "simulated")
    tags = {name: str(forecast.attrs[name]) for name in copied if name in forecast.attrs}
    start = forecast["forecast_reference_time"].values
    with rasterio.MemoryFile() as memory:
        with memory.open(**profile) as file:
            file.write(bands)
            file.update_tags(forecast_reference_time=f"{utc_text(start)}Z", **tags)
            for number, time in enumerate(forecast["time"].values, 1):
                minutes = (time - start) / np.timedelta64(60, "s")
                file.set_band_description(number, f"+{minutes:g} min, {utc_text(time)}Z")
                file.update_tags(number, units=field.attrs["units"], valid_time=utc_text(time))
        # The floating-point predictor is GDAL's 3.
        options = {"compress": "deflate", "predictor": "3", "overview_resampling": "average"}
        with memory.open() as file:
            copy(file, path, driver="COG", **options)


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
    """Write a forecast as GRIB2 (WMO, FM 92), the file whole or not at all.

    A message for each lead time of the field (product template 4.0), of each member (4.1), and of
    each threshold's probability (4.5). Many projections of stores have no template that other
    programs read: so points are in degrees, with the value of the nearest cell.

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
        # 1 is an operational test product, 0 an operational product.
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
                # Packed anew with its values: the sample's packing would not fit the bitmap.
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

    - returns ``latitude`` (row,): degrees, from north to south, in steps as long as the
      grid's.
    - returns ``longitude`` (column,): degrees, from west to east; beyond 180 where the grid crosses
      that meridian.
    - returns ``cells`` (row * column,): positions in a raveled field, -1 outside of the grid.
    """
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
    x, y = grid.from_degrees(own_ellipsoid=True)(*np.meshgrid(longitude, latitude))
    row, column = np.rint((y - grid.y0) / grid.dy), np.rint((x - grid.x0) / grid.dx)
    inside = (row >= 0) & (row < grid.ny) & (column >= 0) & (column < grid.nx)
    cells = np.where(inside, row * grid.nx + column, -1).astype(np.intp)
    return latitude, longitude, cells.ravel()
