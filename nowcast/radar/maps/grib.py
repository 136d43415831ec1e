"""Rain and reflectivity in GRIB2, such as NOAA's MRMS and Stage IV; needs the extra ``grib``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyproj
from numpy.typing import NDArray

from daskdl.errors import DataError, MissingExtraError
from nowcast.radar.attributes import read_time
from nowcast.radar.header import MOST_CELLS, Format, Header
from nowcast.radar.maps.projection import compare_corners, geographic_grid, rotated_grid
from nowcast.rain.grid import Grid


class Parameter(NamedTuple):
    """Kind, factor and interval of a message's numbers."""

    factor: float = 1.0  # to mm h-1, mm or dBZ
    hours: int = 0  # of an amount, 0 where the message says its interval
    kind: str = "rate"  # or "amount" or "reflectivity"


#: Hours of MRMS's amounts, in the order of their numbers, for each way that they are made.
HOURS = (1, 3, 6, 12, 24, 48, 72)
#: By (discipline, category, number): WMO's parameters, then MRMS's table (NSSL).
PARAMETERS = {
    **dict.fromkeys([(0, 1, 7), (0, 1, 52), (0, 1, 65)], Parameter(3600.0)),
    (0, 1, 8): Parameter(kind="amount"),
    (209, 6, 1): Parameter(),
    **{
        (209, 6, 2 + len(HOURS) * way + i): Parameter(1.0, hours, "amount")
        for way in range(4)  # radar only, with gauges, gauges only, mountain mapper
        for i, hours in enumerate(HOURS)
    },
    # Seamless hybrid scan, base, low-level, lowest altitude, composites.
    **dict.fromkeys(
        [(209, 8, 8), (209, 11, 0), (209, 10, 2), (209, 3, 57), (209, 10, 0), (209, 11, 2)],
        Parameter(kind="reflectivity"),
    ),
}
STATION = {161: "MRMS"}
#: Numbers of MRMS's reflectivity.
NO_COVERAGE, NO_ECHO = -999.0, -99.0
#: Set as the number of missing points, so that none can be taken for rain: eccodes gives 9999 for
#: points that a bitmap, complex packing or run-length packing leaves out.
MISSING = 1e33
#: Types of generating process that look ahead (WMO's code table 4.3).
FORECASTS = (2, 3, 4, 5)


def read_header(path: Path, name: str) -> Header:
    """Return the header of the file at ``path``; each map of rain in it counts."""
    times, grids, kinds, centre, others = [], [], [], 0, list[str]()
    with path.open("rb") as file:
        for message in _messages(file):
            parameter = PARAMETERS.get(_parameter(message))
            if parameter is None:
                others.append(_described(message))
                continue
            _check_observed(message)
            _check_statistics(message, parameter.kind)
            kinds.append((parameter.kind, _minutes(message, parameter)))
            times.append(_time(message))
            grids.append(grid_of(partial(_get, message)))
            centre = int(_get(message, "centre", int))
    if not times:
        raise DataError(
            "expected a rain rate, an amount or reflectivity (such as MRMS PrecipRate), found "
            f"{', '.join(dict.fromkeys(others)) or 'none'}; give files of one of these"
        )
    if any(grid != grids[0] for grid in grids):
        raise DataError(
            f"expected all maps on one grid, found {grids[0]} and others"
            "; write a file for each grid"
        )
    if len(set(kinds)) > 1:
        kinds_text = ", ".join(f"{kind} of {minutes} min" for kind, minutes in sorted(set(kinds)))
        raise DataError(
            f"expected maps of one kind, found {kinds_text}; write a file for each, as by grib_copy"
        )
    if len(set(times)) != len(times):
        raise DataError(
            "expected one map a time, found two, as of members or levels; write the one that is "
            "meant into a file of its own, as by grib_copy"
        )
    kind, minutes = kinds[0]
    return Header(
        path=name,
        format=Format.GRIB,
        station=STATION.get(centre, f"GRIB centre {centre}"),
        times=tuple(times),
        grid=grids[0],
        accumulation=np.timedelta64(60 * minutes, "s") if kind == "amount" else None,
        reflectivity=kind == "reflectivity",
    )


def read_values(path: Path, header: Header, index: int) -> NDArray[np.float32]:
    """Return mm h-1, or dBZ, of map ``index``, (ny, nx) with y and x increasing.

    The caller treats negative rain (-3 in MRMS: no coverage) as missing.
    """
    assert header.grid is not None
    eccodes = load_eccodes()
    with path.open("rb") as file:
        of_rain = (m for m in _messages(file) if _parameter(m) in PARAMETERS)
        for message in islice(of_rain, index, None):
            eccodes.codes_set(message, "missingValue", MISSING)
            values = eccodes.codes_get_array(message, "values")
            values[values == MISSING] = np.nan
            if values.size != header.grid.nx * header.grid.ny:
                raise DataError(f"expected {header.grid.shape} cells, found {values.size}")
            by_columns = _get(message, "jPointsAreConsecutive", int)
            values = values.reshape(header.grid.shape, order="F" if by_columns else "C")
            factor = PARAMETERS[_parameter(message)].factor
            if header.accumulation is not None:
                factor /= header.accumulation / np.timedelta64(1, "h")
            if header.reflectivity:
                values[values <= NO_COVERAGE] = np.nan
                values[values <= NO_ECHO] = -np.inf
            if _get(message, "jScansPositively", int) == 0:
                values = values[::-1]
            return np.multiply(values, factor, dtype=np.float32, casting="same_kind")
    raise DataError(f"expected at least {index + 1} maps of rain, found fewer: truncated")


def load_eccodes() -> Any:
    """Return the module ``eccodes``, or raise an error that names the extra."""
    # First: eccodes brings a library of projections of its own, with which pyproj would end the
    # process if it were loaded afterwards.
    import pyproj  # noqa: F401

    try:
        import eccodes
    except (ImportError, RuntimeError) as error:
        raise MissingExtraError("GRIB2 files need eccodes; pip install 'daskdl[grib]'") from error
    return eccodes


def _messages(file: Any) -> Iterator[int]:
    """Yield the messages of a file."""
    eccodes = load_eccodes()
    while (message := eccodes.codes_grib_new_from_file(file)) is not None:
        try:
            yield message
        finally:
            eccodes.codes_release(message)


def _get(message: int, key: str, kind: type) -> Any:
    return load_eccodes().codes_get(message, key, kind)


def _parameter(message: int) -> tuple[int, int, int]:
    keys = ("discipline", "parameterCategory", "parameterNumber")
    if _get(message, "edition", int) != 2:
        return -1, -1, -1
    if not load_eccodes().codes_is_defined(message, keys[1]):
        number = _get(message, "productDefinitionTemplateNumber", int)
        raise DataError(
            f"expected a product of WMO's templates, found the local template 4.{number} of "
            f"{_get(message, 'centre', str)}, which eccodes does not read; write the maps as "
            "netCDF by the tools of that centre, or with wgrib2"
        )
    discipline, category, number = (int(_get(message, key, int)) for key in keys)
    return discipline, category, number


def _described(message: int) -> str:
    numbers = ", ".join(str(number) for number in _parameter(message))
    if _get(message, "edition", int) != 2:
        return "a message of GRIB 1"
    return f"{_get(message, 'name', str)} ({numbers})"


def _check_observed(message: int) -> None:
    """Refuse forecasts."""
    load_eccodes().codes_set(message, "stepUnits", "m")
    ahead = int(_get(message, "endStep", int))
    instant = int(_get(message, "startStep", int)) == ahead
    if ahead > 0 and (instant or _get(message, "typeOfGeneratingProcess", int) in FORECASTS):
        raise DataError(
            f"expected an observation, found a forecast for {ahead} minutes ahead; give files of "
            "an analysis"
        )


def _check_statistics(message: int, kind: str) -> None:
    """Refuse probabilities, members, errors (WMO's templates 4.1 to 4.14), maxima and so on."""
    product = _get(message, "productDefinitionTemplateNumber", int)
    key, made = "typeOfStatisticalProcessing", 255
    if load_eccodes().codes_is_defined(message, key):
        made = _get(message, key, int)
    if (0 < product < 15 and product != 8) or made not in (255, int(kind == "amount")):
        raise DataError(
            "expected rain, its mean (0) or its sum (1), found one of WMO's product template "
            f"4.{product} with statistical process {made}; give files of what was observed"
        )


def _minutes(message: int, parameter: Parameter) -> int:
    """Return the length of an amount's interval in minutes; 0 for other quantities."""
    if parameter.kind != "amount" or parameter.hours:
        return 60 * parameter.hours
    minutes = int(_get(message, "endStep", int)) - int(_get(message, "startStep", int))
    if minutes < 1:
        raise DataError(f"expected an amount over an interval, found one over {minutes} minutes")
    return minutes


def _time(message: int) -> np.datetime64:
    """Return the valid time."""
    date, time = _get(message, "validityDate", int), _get(message, "validityTime", int)
    return read_time(f"{date:08d}", f"{time:04d}00")


#: From a key of a message and the type of its value to the value.
Key = Callable[[str, type], float | int | str]


def grid_of(key: Key) -> Grid:
    """Return the grid of a message, y and x increasing; raise DataError for a Gaussian one."""
    kind = str(key("gridType", str))
    projections = {"polar_stereographic": _stereographic, "lambert": _lambert}
    degrees = kind in ("regular_ll", "rotated_ll")
    if not degrees and kind not in projections:
        raise DataError(
            "expected a regular grid of latitude and longitude, or a polar stereographic or "
            f"Lambert one, found {kind}; put the maps on such a grid first"
        )
    nx, ny = (int(key(name, int)) for name in (("Ni", "Nj") if degrees else ("Nx", "Ny")))
    if not 0 < nx * ny <= MOST_CELLS:
        raise DataError(
            f"expected at most {MOST_CELLS} cells, found {ny} x {nx}; cut a part out of the map"
        )
    for flag in ("iScansNegatively", "alternativeRowScanning"):
        if key(flag, int):
            raise DataError(
                f"expected all rows from west to east, found {flag} 1; write the map by rows first"
            )
    if degrees:
        return _in_degrees(key, nx, ny, rotated=kind == "rotated_ll")
    return _in_metres(key, projections[kind](key), nx, ny)


def _in_degrees(key: Key, nx: int, ny: int, *, rotated: bool) -> Grid:
    edges = ("First", "Last")
    longitude, latitude = (
        [float(key(f"{axis}Of{edge}GridPointInDegrees", float)) for edge in edges]
        for axis in ("longitude", "latitude")
    )
    step_x, step_y = (float(key(f"{axis}DirectionIncrementInDegrees", float)) for axis in "ij")
    south_west, north_east = (longitude[0], min(latitude)), (longitude[1], max(latitude))
    compare_corners(south_west, north_east, (nx - 1, ny - 1), (step_x, step_y), "degrees")
    west = (longitude[0] + 180.0) % 360.0 - 180.0
    south = _south(latitude, step_y, ny)
    if rotated:
        return _rotated(key, west, south, (step_x, step_y), (nx, ny))
    return geographic_grid(west, south, step_x, step_y, nx, ny)


def _rotated(
    key: Key, west: float, south: float, steps: tuple[float, float], count: tuple[int, int]
) -> Grid:
    """Return the grid around a rotated pole."""
    if angle := float(key("angleOfRotationInDegrees", float)):
        raise DataError(
            f"expected a rotated pole without a turn about it, found an angle of {angle:g}"
            "; put the maps on another grid first"
        )
    latitude, longitude = (
        float(key(f"{axis}OfSouthernPoleInDegrees", float)) for axis in ("latitude", "longitude")
    )
    return rotated_grid((latitude, longitude), west, south, steps, count)


def _south(latitude: list[float], step: float, count: int) -> float:
    """Return the latitude of the southern row; MRMS's last point is rounded, its first is not."""
    first, last = latitude
    return first if first < last else round(first - step * (count - 1), 9)


def _in_metres(key: Key, projection: str, nx: int, ny: int) -> Grid:
    if key("earthIsOblate", int):
        axes = [float(key(f"earth{name}AxisInMetres", float)) for name in ("Major", "Minor")]
        earth = f"+a={axes[0]} +b={axes[1]}"
    else:
        earth = f"+R={float(key('radius', float))}"
    crs = f"{projection} {earth} +units=m"
    x, y = pyproj.Proj(crs)(
        float(key("longitudeOfFirstGridPointInDegrees", float)),
        float(key("latitudeOfFirstGridPointInDegrees", float)),
    )
    dx, dy = (float(key(f"D{axis}InMetres", float)) for axis in "xy")
    y0 = y if key("jScansPositively", int) else y - dy * (ny - 1)
    return Grid(crs=crs, x0=x, y0=y0, dx=dx, dy=dy, nx=nx, ny=ny)


def _stereographic(key: Key) -> str:
    pole = -90 if int(key("projectionCentreFlag", int)) & 128 else 90
    return (
        f"+proj=stere +lat_0={pole} +lat_ts={key('LaDInDegrees', float)} "
        f"+lon_0={key('orientationOfTheGridInDegrees', float)}"
    )


def _lambert(key: Key) -> str:
    return (
        f"+proj=lcc +lat_1={key('Latin1InDegrees', float)} +lat_2={key('Latin2InDegrees', float)} "
        f"+lat_0={key('LaDInDegrees', float)} +lon_0={key('LoVInDegrees', float)}"
    )
