"""Forecast files: what they are checked for when they are opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from daskdl.errors import DataError

if TYPE_CHECKING:
    import xarray as xr


def open_forecast(path: Path) -> xr.Dataset:
    """Open a forecast that ``nowcast predict`` wrote, zarr or netCDF.

    Raises
    ------
    DataError
        When there is nothing, or something else.
    """
    import xarray as xr

    if not path.exists():
        raise DataError(f"{path}: expected a forecast, found nothing; nowcast predict writes one")
    try:
        if path.is_dir():
            dataset = xr.open_zarr(path, decode_timedelta=True)
        else:
            dataset = xr.open_dataset(path, engine="h5netcdf", decode_timedelta=True)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{path}: expected a forecast as nowcast predict writes it, found something else "
            f"({type(error).__name__})"
        ) from error
    rain = dataset.variables.get("rain_rate")
    if rain is None or rain.dims != ("lead_time", "y", "x"):
        found = "no rain_rate" if rain is None else f"rain_rate {rain.dims}"
        raise DataError(f"{path}: expected a forecast, rain_rate (lead_time, y, x), found {found}")
    return dataset
