"""Rain rates in GRIB2 on a grid of degrees, such as NOAA's MRMS; needs the extra ``grib``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, MissingExtraError
from nowcast.radar.geographic import geographic_grid
from nowcast.radar.header import MOST_CELLS, Format, Header
from nowcast.rain.grid import Grid

# (discipline, category, number) of rain rates, and the factor to mm h-1: MRMS's PrecipRate, then
# WMO's precipitation rate, total precipitation rate and rain precipitation rate in kg m-2 s-1.
RATES = {(209, 6, 1): 1.0, (0, 1, 7): 3600.0, (0, 1, 52): 3600.0, (0, 1, 65): 3600.0}
STATION = {161: "MRMS"}


def read_header(path: Path, name: str) -> Header:
    """Return the header of the file at ``path``; each rain rate in it is a map."""
    times, grids, centre = [], [], 0
    with path.open("rb") as file:
        for message in _messages(file):
            times.append(_time(message))
            grids.append(_grid(message))
            centre = int(_get(message, "centre", int))
    if not times:
        raise DataError(
            "expected a rain rate (such as MRMS PrecipRate), found none; give files of a rain rate"
        )
    if any(grid != grids[0] for grid in grids):
        raise DataError(
            f"expected all maps on one grid, found {grids[0]} and others"
            "; write a file for each grid"
        )
    return Header(
        path=name,
        format=Format.GRIB,
        station=STATION.get(centre, f"GRIB centre {centre}"),
        times=tuple(times),
        grid=grids[0],
    )


def read_values(path: Path, header: Header, index: int) -> NDArray[np.float32]:
    """Return the rain rate of map ``index`` in mm h-1, (ny, nx) with y and x increasing.

    Negative values (-3 in MRMS: no coverage) are no rain; the caller takes them for missing.
    """
    eccodes = _eccodes()
    with path.open("rb") as file:
        for number, message in enumerate(_messages(file)):
            if number == index:
                grid = _grid(message)
                values = eccodes.codes_get_array(message, "values")
                if values.size != grid.nx * grid.ny:
                    raise DataError(
                        f"expected {grid.shape} cells, found {values.size}; fetch the file again"
                    )
                values = values.reshape(grid.shape)
                if eccodes.codes_get(message, "bitmapPresent"):
                    gap = eccodes.codes_get_double(message, "missingValue")
                    values[values == gap] = np.nan
                if _get(message, "jScansPositively", int) == 0:
                    values = values[::-1]
                return np.multiply(values, _factor(message), dtype=np.float32, casting="same_kind")
    raise DataError(
        f"expected at least {index + 1} rain rates, found fewer: truncated; fetch the file again"
    )


def _eccodes() -> Any:
    try:
        import eccodes
    except (ImportError, RuntimeError) as error:
        raise MissingExtraError(
            "reading GRIB2 files needs eccodes; pip install 'daskdl[grib]'"
        ) from error
    return eccodes


def _messages(file: Any) -> Iterator[int]:
    """Give the messages of a file that are rain rates, one at a time."""
    eccodes = _eccodes()
    while True:
        with _released(eccodes.codes_grib_new_from_file(file)) as message:
            if message is None:
                return
            if _parameter(message) in RATES:
                yield message


@contextmanager
def _released(message: Any) -> Iterator[Any]:
    try:
        yield message
    finally:
        if message is not None:
            _eccodes().codes_release(message)


def _get(message: int, key: str, kind: type) -> Any:
    return _eccodes().codes_get(message, key, kind)


def _parameter(message: int) -> tuple[int, int, int]:
    keys = ("discipline", "parameterCategory", "parameterNumber")
    if _get(message, "edition", int) != 2:
        return -1, -1, -1
    discipline, category, number = (int(_get(message, key, int)) for key in keys)
    return discipline, category, number


def _factor(message: int) -> float:
    return RATES[_parameter(message)]


def _time(message: int) -> np.datetime64:
    """Return the valid time."""
    date, time = _get(message, "validityDate", int), _get(message, "validityTime", int)
    text = f"{date // 10000:04d}-{date // 100 % 100:02d}-{date % 100:02d}"
    minutes = time // 100 * 60 + time % 100
    return np.datetime64(text, "s") + np.timedelta64(minutes * 60, "s")


def _grid(message: int) -> Grid:
    kind = _get(message, "gridType", str)
    if kind != "regular_ll":
        raise DataError(
            f"expected a regular grid of latitude and longitude, found {kind}"
            "; put the maps on such a grid first"
        )
    nx, ny = int(_get(message, "Ni", int)), int(_get(message, "Nj", int))
    if not 0 < nx * ny <= MOST_CELLS or _get(message, "iScansNegatively", int):
        raise DataError(
            f"expected at most {MOST_CELLS} cells from west to east, found {ny} x {nx}"
            "; cut a part out of the map"
        )
    edges = ("First", "Last")
    longitude, latitude = (
        [float(_get(message, f"{axis}Of{edge}GridPointInDegrees", float)) for edge in edges]
        for axis in ("longitude", "latitude")
    )
    step_x, step_y = (
        float(_get(message, f"{axis}DirectionIncrementInDegrees", float)) for axis in "ij"
    )
    west = (longitude[0] + 180.0) % 360.0 - 180.0
    return geographic_grid(west, _south(latitude, step_y, ny), step_x, step_y, nx, ny)


def _south(latitude: list[float], step: float, count: int) -> float:
    """Return the latitude of the southern row; MRMS's last point is rounded, its first is not."""
    first, last = latitude
    return first if first < last else round(first - step * (count - 1), 9)
