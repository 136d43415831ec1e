"""Rain maps in CF netCDF or zarr: rates, amounts or reflectivity on a projected grid.

Such files come from the Bureau of Meteorology, pysteps' exporter and NASA's IMERG; so are stores of
mlcast's convention and of this program.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.header import Format, Header
from nowcast.radar.maps.cf_rain import EXPECTED, kind_of, rain_of, valid_values
from nowcast.radar.maps.projection import check_metres, geographic_grid, in_metres, rotated_grid
from nowcast.radar.netcdf import open_dataset
from nowcast.radar.units import METRES, rain_factor
from nowcast.rain.grid import Grid

if TYPE_CHECKING:
    import xarray as xr

# Names of longitudes and latitudes that are axes, best first.
AXES = (
    ("longitude", "latitude"), ("grid_longitude", "grid_latitude"),
    ("lon", "lat"), ("rlon", "rlat"),
)  # fmt: skip
# Metres between one place by crs_wkt and by the other attributes of a grid mapping.
CONTRADICTION = 5_000.0


def read_header(path: Path, name: str) -> Header:
    """Return the header of the file or zarr store at ``path``, called ``name``.

    Times are valid times: the end of the interval for accumulations.
    """
    with open_dataset(path) as dataset:
        rain = rain_of(dataset)
        times, starts = _times(dataset, rain)
        kind = kind_of(rain)
        keys = ("station_name", "station_id", "station", "title")
        named = [str(dataset.attrs[key]) for key in keys if dataset.attrs.get(key)]
        return Header(
            path=name,
            format=Format.CFZARR if path.is_dir() else Format.CFNETCDF,
            station=(*named, "CF netCDF")[0],
            times=tuple(times.astype("datetime64[s]")),
            grid=_grid(dataset, rain),
            accumulation=_accumulation(rain, times, starts) if kind == "amount" else None,
            reflectivity=kind == "reflectivity",
        )


def _accumulation(
    rain: xr.DataArray, times: NDArray[np.datetime64], starts: NDArray[np.datetime64] | None
) -> np.timedelta64:
    """Return the length of the intervals: stated, or else the step between the times."""
    intervals = np.unique(np.diff(times) if starts is None else times - starts)
    if intervals.size == 0:
        raise DataError(
            f"{rain.name} is an accumulation; expected the interval's start (bounds of time, or "
            "start_time) or several times in equal steps, found none"
        )
    if starts is None and intervals.size > 1 and intervals[0] > np.timedelta64(0):
        # Without their starts, times further apart than usual have a gap between them.
        each = np.diff(times)
        usual = intervals[np.argmax([(each == one).sum() for one in intervals])]
        if usual == intervals[0] and 2 * (each == usual).sum() > each.size:
            intervals = intervals[:1]
    if intervals.size != 1 or not intervals[0] > np.timedelta64(0):
        lengths = ", ".join(f"{one / np.timedelta64(1, 'm'):g}" for one in intervals[:4])
        raise DataError(
            f"expected accumulations over one length of time, found lengths of {lengths} min"
            "; write a file for each length, or the bounds of time"
        )
    length: np.timedelta64 = intervals[0]
    return length


def read_values(path: Path, header: Header, index: int) -> NDArray[np.float32]:
    """Return mm h-1, or dBZ, of time ``index``, (ny, nx) with y and x increasing."""
    with open_dataset(path) as dataset:
        rain = rain_of(dataset)
        units = str(rain.attrs.get("units", "")).strip()
        kind = kind_of(rain)
        echo = kind == "reflectivity"
        factor = float(units.lower() == "dbz") or None if echo else rain_factor(units, kind)
        if factor is None:
            raise DataError(
                f"expected {rain.name} in {EXPECTED[kind]}, found {units!r}"
                "; convert the numbers and their units"
            )
        x, y = _axes(dataset, rain)
        extra = [dim for dim in rain.dims if dim not in (y.name, x.name)]
        chosen = {dim: index if rain.sizes[dim] > 1 else 0 for dim in extra}
        # In single precision: packed values become double otherwise, eight bytes a cell.
        chosen_map = rain.isel(chosen).transpose(y.name, x.name)
        values = valid_values(chosen_map.values.astype(np.float32), rain)
        ascending = (bool(y[-1] > y[0]), bool(x[-1] > x[0]))
    if header.accumulation is not None:
        factor /= header.accumulation / np.timedelta64(1, "h")
    values = values[:: 1 if ascending[0] else -1, :: 1 if ascending[1] else -1]
    return np.ascontiguousarray(values * np.float32(factor))


def _times(
    dataset: xr.Dataset, rain: xr.DataArray
) -> tuple[NDArray[np.datetime64], NDArray[np.datetime64] | None]:
    """Return the valid times of the maps, and the starts of their intervals if stated."""
    candidates = [
        variable
        for variable in dataset.variables.values()
        if variable.dtype.kind == "M" and variable.attrs.get("standard_name") == "time"
    ] + [dataset.variables[key] for key in ("time", "valid_time") if key in dataset.variables]
    of_rain = [v for v in candidates if v.size == 1 or set(v.dims) <= set(rain.dims)]
    of_rain = [variable for variable in of_rain if variable.dtype.kind == "M"]
    if not of_rain:
        raise DataError(
            "expected a time of the rain with standard_name 'time', found none"
            "; give the time that name"
        )
    # A time along the rain's axes comes before a single one, such as the first of an archive.
    time = max(of_rain, key=lambda variable: bool(set(variable.dims) & set(rain.dims)))
    known = (*time.dims, *(axis.name for axis in _axes(dataset, rain)))
    several = [f"{n} {dim}" for dim, n in rain.sizes.items() if n > 1 and dim not in known]
    if several:  # members, levels, lead times
        raise DataError(
            f"expected one rain map a time, found {several[0]} of {rain.name}; write the one that "
            "was observed into a file of its own"
        )
    times = np.atleast_1d(time.values)
    for variable in dataset.variables.values():
        made = variable.attrs.get("standard_name") == "forecast_reference_time"
        if made and variable.dtype.kind == "M" and (times > variable.values.min()).any():
            raise DataError(
                f"expected observations, found a forecast made at {variable.values.min()}; give "
                "files of what was observed"
            )
    edges = _bounds(dataset, time)
    if edges is not None:
        edges = edges.astype("datetime64[ns]").reshape(-1, 2)
        return edges[:, 1], edges[:, 0]
    if "start_time" in dataset.variables and dataset["start_time"].dtype.kind == "M":
        return times, np.atleast_1d(dataset["start_time"].values)
    return times, None


def _bounds(dataset: xr.Dataset, axis: Any) -> NDArray[Any] | None:
    """Return the edges of the cells along an axis, (n, 2); None if they are not stated."""
    bounds = axis.attrs.get("bounds") or axis.encoding.get("bounds")
    return dataset[bounds].values if bounds in dataset.variables else None


def _compare_bounds(dataset: xr.Dataset, axes: list[xr.DataArray]) -> None:
    """Compare the coordinates with the middles of their stated bounds."""
    for axis in axes:
        edges = _bounds(dataset, axis)
        if edges is None:
            continue
        apart = np.abs(edges.mean(axis=-1) - axis.values).max()
        width = np.abs(np.diff(edges, axis=-1)).min()
        if not apart <= 0.1 * width:
            raise DataError(
                f"expected {axis.name} in the middle of its bounds, found it {apart:g} away, with "
                f"cells of {width:g}; mend either"
            )


def _axes(dataset: xr.Dataset, rain: xr.DataArray) -> list[xr.DataArray]:
    """Return the coordinates of the rain along x and y, in metres or degrees."""
    return _in_degrees(dataset, rain) or [_axis(dataset, rain, axis) for axis in "xy"]


def _axis(dataset: xr.Dataset, rain: xr.DataArray, axis: str) -> xr.DataArray:
    """Return the projection coordinate of the rain along ``axis`` ('x' or 'y')."""
    for dim in rain.dims:
        if dim in dataset.variables:
            coordinate = dataset[dim]
            if coordinate.attrs.get("standard_name") == f"projection_{axis}_coordinate":
                return coordinate
    raise DataError(
        f"expected a coordinate of {rain.name} with standard_name projection_{axis}_coordinate, "
        f"found dimensions {rain.dims}; give it that standard_name, or put a curved grid on a "
        "regular one first"
    )


def _in_degrees(dataset: xr.Dataset, rain: xr.DataArray) -> list[xr.DataArray] | None:
    """Return the longitudes and latitudes of a grid in steps of degrees; None for others."""
    coordinates = {
        str(dataset[dim].attrs.get("standard_name", dim)): dataset[dim]
        for dim in rain.dims
        if dim in dataset.variables
        and str(dataset[dim].attrs.get("units", "")).startswith("degree")
    }
    for names in AXES:
        if coordinates.keys() >= set(names):
            return [coordinates[name] for name in names]
    return None


def _geographic(axes: list[xr.DataArray], mapping: dict[str, Any]) -> Grid:
    """Return the grid of longitudes and latitudes in equal steps, of a rotated pole too."""
    starts: list[float] = []
    steps: list[float] = []
    for axis in axes:
        values = np.sort(axis.values.astype(np.float64))
        step = (values[-1] - values[0]) / max(1, len(values) - 1)
        if len(values) < 2 or np.abs(np.diff(values) - step).max() > 0.05 * step:
            raise DataError(
                f"expected {axis.name} in two or more equal steps of degrees, found others"
                "; put the rain on a regular grid first"
            )
        starts.append(float(values[0]))
        steps.append(float(step))
    (longitude, latitude), (dlon, dlat) = starts, steps
    count = (axes[0].size, axes[1].size)
    rotated = mapping.get("grid_mapping_name") == "rotated_latitude_longitude"
    if not rotated and axes[0].attrs.get("standard_name") != "grid_longitude":
        return geographic_grid(longitude, latitude, dlon, dlat, *count)
    north, east = (mapping.get(f"grid_north_pole_{key}") for key in ("latitude", "longitude"))
    turn = mapping.get("north_pole_grid_longitude", 0.0)
    if not rotated or north is None or east is None or turn:
        raise DataError(
            f"expected {axes[0].name} in degrees around a rotated pole that the grid mapping "
            f"states, without a turn about it, found pole {north}, {east} and turn {turn}; mend "
            "the grid mapping, or put the maps on another grid first"
        )
    return rotated_grid(
        (-float(north), float(east) + 180.0), longitude, latitude, (dlon, dlat), count
    )


def _grid(dataset: xr.Dataset, rain: xr.DataArray) -> Grid:
    _compare_bounds(dataset, _axes(dataset, rain))
    degrees = _in_degrees(dataset, rain)
    mapping = rain.attrs.get("grid_mapping") or rain.encoding.get("grid_mapping")
    if degrees is not None:
        known = mapping in dataset.variables
        return _geographic(degrees, dataset[mapping].attrs if known else {})
    # pysteps' grid mapping lacks the ellipsoid, its text does not.
    stated = dataset.attrs.get("projection")
    if isinstance(stated, str) and "+proj=" in stated:
        return _on_axes(dataset, rain, in_metres(stated))
    if mapping not in dataset.variables:
        raise DataError(
            f"expected a grid mapping of {rain.name}, found {mapping!r}"
            "; name one in its attribute grid_mapping"
        )
    attributes = {
        key: tuple(value.tolist()) if isinstance(value, np.ndarray) else value
        for key, value in dataset[mapping].attrs.items()
    }
    try:
        crs = _projection(tuple(sorted(attributes.items())))
    except (pyproj.exceptions.CRSError, KeyError) as error:
        raise DataError(
            f"the grid mapping {mapping!r} cannot be read ({error})"
            "; write its attributes as CF lists them"
        ) from error
    return _on_axes(dataset, rain, crs)


def _on_axes(dataset: xr.Dataset, rain: xr.DataArray, crs: str) -> Grid:
    """Return the grid of a projection in metres on the coordinates of the rain."""
    values = []
    for axis in "xy":
        coordinate = _axis(dataset, rain, axis)
        units = coordinate.attrs.get("units", "m")
        if units not in METRES:
            raise DataError(
                f"expected {coordinate.name} in m or km, found {units!r}"
                "; convert the numbers and their units"
            )
        values.append(coordinate.values.astype(np.float64) * METRES[units])
    _compare_places(dataset, rain, crs, *values)
    return Grid.from_coordinates(crs, *map(np.sort, values), where="projection")


def _compare_places(
    dataset: xr.Dataset,
    rain: xr.DataArray,
    crs: str,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
) -> None:
    """Compare the corners with the latitudes and longitudes of cells, if a file has both."""
    dims = [_axis(dataset, rain, axis).name for axis in "yx"]
    places = {
        str(variable.attrs.get("standard_name", name)): variable
        for name, variable in dataset.variables.items()
        if set(variable.dims) == set(dims)
    }
    if not {"latitude", "longitude"} <= places.keys():
        return
    corners = np.ix_([0, -1], [0, -1])
    latitude, longitude = (
        places[key].transpose(*dims).values[corners].astype(np.float64)
        for key in ("latitude", "longitude")
    )
    east, north = pyproj.Proj(crs)(longitude, latitude)
    apart = np.hypot(east - x[[0, -1]], north - y[[0, -1], np.newaxis])
    allowed = max(2.0 * abs(x[1] - x[0]), 0.01 * abs(x[-1] - x[0])) if x.size > 1 else np.inf
    if np.any(apart[np.isfinite(apart)] > allowed):
        raise DataError(
            "expected the latitudes and longitudes of the cells to agree with the grid mapping, "
            f"found corners up to {np.nanmax(apart) / 1000:.0f} km apart; mend either"
        )


@lru_cache(maxsize=32)
def _projection(attributes: tuple[tuple[str, Any], ...]) -> str:
    """Return the WKT of a grid mapping, cached since PROJ takes a third of a second."""
    mapping = dict(attributes)
    crs = pyproj.CRS.from_cf(mapping)
    check_metres(crs)
    wkt = mapping.pop("crs_wkt", None) or mapping.pop("spatial_ref", None)
    name = mapping.get("grid_mapping_name")
    # Of an oblique Mercator the attributes cannot say the angle of the grid to its central line.
    if wkt and crs.is_projected and name not in (None, "oblique_mercator"):
        there = places = np.array([[0.0, 1e5], [0.0, 1e5]])
        with suppress(KeyError, pyproj.exceptions.CRSError):  # of attributes that leave some out
            stated = pyproj.CRS.from_cf(mapping)
            there = pyproj.Transformer.from_crs(crs, stated, always_xy=True).transform(*places)
        if not np.abs(there - places).max() < CONTRADICTION:
            raise DataError(
                f"expected crs_wkt to say what the attributes of the grid mapping say, found "
                f"{crs.name!r} and {name}; mend either"
            )
    return crs.to_wkt()
