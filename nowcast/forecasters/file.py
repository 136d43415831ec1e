"""Forecast files: what they are checked for when they are opened, and before they are replaced."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from daskdl.errors import DataError, SettingsError

if TYPE_CHECKING:
    import xarray as xr


def open_forecast(path: Path) -> xr.Dataset:
    """Open a forecast that ``nowcast predict`` wrote, zarr or netCDF.

    Returns
    -------
    Dataset
        ``rain_rate (lead_time, y, x)`` in mm h-1, with ``forecast_reference_time`` and the valid
        ``time`` of each lead time.

    Raises
    ------
    DataError
        When there is nothing, or something else.
    """
    import xarray as xr

    if not path.exists():
        raise DataError(f"{path}: expected a forecast, found nothing; run nowcast predict first")
    try:
        if path.is_dir():
            dataset = xr.open_zarr(path, consolidated=True, decode_timedelta=True)
        else:
            dataset = xr.open_dataset(path, engine="h5netcdf", decode_timedelta=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: expected a forecast as nowcast predict writes it, found something else "
            f"({type(error).__name__}); make it anew"
        ) from error
    found = _found_instead(dataset)
    if found:
        dataset.close()
        raise DataError(
            f"{path}: expected a forecast, rain_rate (lead_time, y, x), found {found}; use a file "
            "that nowcast predict wrote"
        )
    return dataset


def check_replaceable(path: Path) -> None:
    """Raise a SettingsError when something else than a forecast is where one is to be written.

    Writing a forecast replaces what is there, a folder with all that is in it.
    """
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    try:
        open_forecast(path).close()
    except DataError as error:
        raise SettingsError(
            f"--out: expected a new name or that of an older forecast, found something else at "
            f"{path}; choose another name, or remove it"
        ) from error


def _found_instead(dataset: xr.Dataset) -> str | None:
    """Say what a Dataset is instead of a forecast; nothing when it is one."""
    rain = dataset.variables.get("rain_rate")
    if rain is None:
        return "no rain_rate"
    if rain.dims != ("lead_time", "y", "x"):
        return f"rain_rate ({', '.join(map(str, rain.dims))})"
    missing = {"lead_time", "forecast_reference_time", "time", "y", "x"} - dataset.coords.keys()
    if missing:
        return f"none of the coordinates {', '.join(sorted(map(str, missing)))}"
    return None
