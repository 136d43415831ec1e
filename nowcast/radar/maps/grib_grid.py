"""Grids of GRIB2 messages: degrees, of a rotated pole too, polar stereographic and Lambert's."""

from __future__ import annotations

import math
from collections.abc import Callable

from daskdl.errors import DataError
from nowcast.radar.header import MOST_CELLS
from nowcast.radar.maps.projection import RADIUS, compare_corners, geographic_grid
from nowcast.rain.grid import Grid

#: From a key of a message and the type of its value to the value.
Key = Callable[[str, type], float | int | str]


def grid_of(key: Key) -> Grid:
    """Return the grid of a message, y and x increasing; a Gaussian one is a DataError."""
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
    """Return the grid in degrees around a pole that lies elsewhere, as lengths along its equator.

    The rotated equator runs through such grids, so that their degrees are nearly lengths.
    """
    if angle := float(key("angleOfRotationInDegrees", float)):
        raise DataError(
            f"expected a rotated pole without a turn about it, found an angle of {angle:g}"
            "; put the maps on another grid first"
        )
    latitude, longitude = (
        float(key(f"{axis}OfSouthernPoleInDegrees", float)) for axis in ("latitude", "longitude")
    )
    crs = (
        f"+proj=ob_tran +o_proj=eqc +o_lat_p={-latitude:.9g} +o_lon_p=0 +lon_0={longitude:.9g} "
        f"+R={RADIUS:.0f} +units=m"
    )
    degree = math.radians(1.0) * RADIUS
    x0, y0, dx, dy = (degrees * degree for degrees in (west, south, *steps))
    return Grid(crs=crs, x0=x0, y0=y0, dx=dx, dy=dy, nx=count[0], ny=count[1])


def _south(latitude: list[float], step: float, count: int) -> float:
    """Return the latitude of the southern row; MRMS's last point is rounded, its first is not."""
    first, last = latitude
    return first if first < last else round(first - step * (count - 1), 9)


def _in_metres(key: Key, projection: str, nx: int, ny: int) -> Grid:
    import pyproj

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
