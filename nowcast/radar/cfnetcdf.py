"""Rain maps in CF netCDF: rates or accumulations on a projected grid with a grid mapping."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.header import Format, Header
from nowcast.rain.grid import Grid

if TYPE_CHECKING:
    import xarray as xr

# Standard names of rain, best first: a file may have several.
RATES = (
    "rainfall_rate",
    "lwe_precipitation_rate",
    "rainfall_flux",
    "precipitation_flux",
)
AMOUNTS = (
    "precipitation_amount",
    "rainfall_amount",
    "lwe_thickness_of_precipitation_amount",
    "thickness_of_rainfall_amount",
)
# Factors to mm h-1, or to mm for amounts; 1 kg m-2 of water is 1 mm.
RATE_UNITS = {
    "mm h-1": 1.0,
    "mm/h": 1.0,
    "mm hr-1": 1.0,
    "mm/hr": 1.0,
    "kg m-2 h-1": 1.0,
    "kg m-2 s-1": 3600.0,
    "mm s-1": 3600.0,
    "m s-1": 3.6e6,
    "m/s": 3.6e6,
}
AMOUNT_UNITS = {"kg m-2": 1.0, "kg/m2": 1.0, "mm": 1.0, "cm": 10.0, "m": 1000.0}
LENGTH_UNITS = {"m": 1.0, "metre": 1.0, "meter": 1.0, "metres": 1.0, "km": 1000.0}


def read_header(path: Path, name: str) -> Header:
    """Return the header of the file at ``path``, called ``name``.

    Times are valid times: the end of the interval for accumulations.
    """
    with _open(path) as dataset:
        rain = _rain(dataset, name)
        times, starts = _times(dataset, rain, name)
        accumulation = None
        if rain.attrs.get("standard_name") in AMOUNTS:
            if starts is None:
                raise DataError(
                    f"{name}: {rain.name} is an accumulation; expected the interval's start "
                    "(bounds of time, or start_time), found none"
                )
            intervals = np.unique(times - starts)
            if intervals.size != 1 or not intervals[0] > np.timedelta64(0):
                raise DataError(
                    f"{name}: expected accumulations over one length of time, found {intervals}"
                )
            accumulation = intervals[0]
        station = dataset.attrs.get("station_name") or dataset.attrs.get("station_id")
        return Header(
            path=name,
            format=Format.CFNETCDF,
            station=str(station or dataset.attrs.get("title") or "CF netCDF"),
            times=tuple(times.astype("datetime64[s]")),
            grid=_grid(dataset, rain, name),
            accumulation=accumulation,
        )


def read_values(path: Path, header: Header, index: int) -> NDArray[np.float32]:
    """Return the rain rate in mm h-1 of time ``index``, (ny, nx) with y and x increasing."""
    with _open(path) as dataset:
        rain = _rain(dataset, header.path)
        units = str(rain.attrs.get("units", "")).strip()
        known = AMOUNT_UNITS if header.accumulation is not None else RATE_UNITS
        if units not in known:
            raise DataError(
                f"{header.path}: expected {rain.name} in one of {', '.join(known)}, found {units!r}"
            )
        y, x = (_axis(dataset, rain, axis, header.path) for axis in "yx")
        extra = [dim for dim in rain.dims if dim not in (y.name, x.name)]
        values = rain.isel(dict.fromkeys(extra, index)).transpose(y.name, x.name).values
        ascending = (bool(y[-1] > y[0]), bool(x[-1] > x[0]))
    factor = known[units]
    if header.accumulation is not None:
        factor /= header.accumulation / np.timedelta64(1, "h")
    values = values[:: 1 if ascending[0] else -1, :: 1 if ascending[1] else -1]
    return np.ascontiguousarray((values * factor).astype(np.float32))


def _open(path: Path) -> xr.Dataset:
    import xarray as xr

    # Four times as quick as h5netcdf on these small files, and reads netCDF-3 as well.
    return xr.open_dataset(path, engine="netcdf4", decode_timedelta=False, cache=False)


def _rain(dataset: xr.Dataset, name: str) -> xr.DataArray:
    for standard_name in (*RATES, *AMOUNTS):
        for variable in dataset.data_vars.values():
            if variable.attrs.get("standard_name") == standard_name and variable.ndim >= 2:
                return variable
    found = ", ".join(str(key) for key in list(dataset.data_vars)[:8])
    raise DataError(
        f"{name}: expected a variable with a standard_name of rain ({', '.join(RATES[:2])}, "
        f"{AMOUNTS[0]}...), found {found or 'no variable'}"
    )


def _times(
    dataset: xr.Dataset, rain: xr.DataArray, name: str
) -> tuple[NDArray[np.datetime64], NDArray[np.datetime64] | None]:
    """Return the valid times of the maps and the starts of their intervals, if these are stated."""
    candidates = [
        variable
        for variable in dataset.variables.values()
        if variable.dtype.kind == "M" and variable.attrs.get("standard_name") == "time"
    ] + [dataset.variables[key] for key in ("time", "valid_time") if key in dataset.variables]
    own = [variable for variable in candidates if set(variable.dims) <= set(rain.dims)]
    if not own or own[0].dtype.kind != "M":
        raise DataError(
            f"{name}: expected a time of the rain with standard_name 'time', found none"
        )
    time = own[0]
    times = np.atleast_1d(time.values)
    bounds = time.attrs.get("bounds") or time.encoding.get("bounds")
    if bounds in dataset.variables:
        edges = np.asarray(dataset[bounds].values, "datetime64[ns]").reshape(-1, 2)
        return edges[:, 1], edges[:, 0]
    if "start_time" in dataset.variables and dataset["start_time"].dtype.kind == "M":
        return times, np.atleast_1d(dataset["start_time"].values)
    return times, None


def _axis(dataset: xr.Dataset, rain: xr.DataArray, axis: str, name: str) -> xr.DataArray:
    """Return the projection coordinate of the rain along ``axis`` ('x' or 'y')."""
    for dim in rain.dims:
        if dim in dataset.variables:
            coordinate = dataset[dim]
            if coordinate.attrs.get("standard_name") == f"projection_{axis}_coordinate":
                return coordinate
    raise DataError(
        f"{name}: expected a coordinate of {rain.name} with standard_name "
        f"projection_{axis}_coordinate, found dimensions {rain.dims}"
    )


def _grid(dataset: xr.Dataset, rain: xr.DataArray, name: str) -> Grid:
    import pyproj

    mapping = rain.attrs.get("grid_mapping") or rain.encoding.get("grid_mapping")
    if mapping not in dataset.variables:
        raise DataError(f"{name}: expected a grid mapping of {rain.name}, found {mapping!r}")
    attributes = {
        key: tuple(value.tolist()) if isinstance(value, np.ndarray) else value
        for key, value in dataset[mapping].attrs.items()
    }
    try:
        crs = _projection(tuple(sorted(attributes.items())))
    except (pyproj.exceptions.CRSError, KeyError) as error:
        raise DataError(f"{name}: the grid mapping {mapping!r} cannot be read ({error})") from error
    values = []
    for axis in "xy":
        coordinate = _axis(dataset, rain, axis, name)
        units = coordinate.attrs.get("units", "m")
        if units not in LENGTH_UNITS:
            raise DataError(f"{name}: expected {coordinate.name} in m or km, found {units!r}")
        values.append(np.sort(coordinate.values.astype(np.float64) * LENGTH_UNITS[units]))
    return Grid.from_coordinates(crs, *values, where=name)


@lru_cache(maxsize=32)
def _projection(attributes: tuple[tuple[str, Any], ...]) -> str:
    """Return the WKT of a grid mapping; PROJ takes a third of a second, each file has the same."""
    import pyproj

    return pyproj.CRS.from_cf(dict(attributes)).to_wkt()
