"""Projections of files: in kilometres or degrees, and corners compared with the scale."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from daskdl.errors import DataError
from nowcast.rain.grid import Grid

RADIUS = 6_371_007.0  # of the sphere with the earth's surface, metres


def in_metres(projection: str) -> str:
    """Return a PROJ string in metres; an earth of some thousand "metres" means kilometres.

    Examples
    --------
    >>> in_metres("+proj=stere +lat_0=90 +a=6378.137 +b=6356.752")
    '+proj=stere +lat_0=90 +a=6378137.000 +b=6356752.000 +units=m'
    """

    def scaled(match: re.Match[str]) -> str:
        value = float(match[2])
        return f"{match[1]}{value * 1000.0 if value < 1e5 else value:.3f}"

    text = re.sub(r"(\+(?:a|b|R)=)([\d.]+)", scaled, projection)
    return re.sub(r"\s*\+units=\w+", "", text) + " +units=m"


def check_metres(crs: Any) -> None:
    """Refuse a pyproj CRS whose lengths are feet or another unit."""
    unit = crs.axis_info[0].unit_name if crs.axis_info else "metre"
    if unit not in ("metre", "meter"):
        raise DataError(
            f"expected a projection in metres, found {crs.name} in {unit}; put the map on one in "
            "metres first, as gdalwarp -t_srs does"
        )


def compare_corners(
    start: Sequence[float],
    end: Sequence[float],
    cells: Sequence[int],
    steps: Sequence[float],
    unit: str,
) -> None:
    """Compare the corners with the scale: a hundredth of the extent, or two cells, may differ.

    Corners that are not stated are not compared.
    """
    for axis, first, last, n, step in zip("xy", start, end, cells, steps, strict=True):
        extent = last - first
        if unit == "degrees" and axis == "x":
            extent = extent % 360.0 or 360.0
        if step > 0 and abs(extent - n * step) > max(0.01 * abs(extent), 2.0 * step):
            raise DataError(
                f"expected {n} cells between the corners, {extent:g} {unit} apart along {axis}, "
                f"found {axis}scale {step:g} {unit}, which makes {n * step:g} {unit}"
                "; mend the scale or the corners"
            )


def geographic_grid(
    longitude: float, latitude: float, dlon: float, dlat: float, nx: int, ny: int
) -> Grid:
    """Return the grid of cells in equal steps of degrees from the south-western centre.

    The projection is equidistant cylindrical, with the true scale along the middle latitude.
    Degrees are lengths in it: cells stay the same, and nothing is interpolated. Away from the
    middle, x is stretched by cos(middle) / cos(latitude).

    Examples
    --------
    >>> grid = geographic_grid(-129.995, 20.005, 0.01, 0.01, 7000, 3500)
    >>> round(grid.dx), round(grid.dy)
    (882, 1112)
    """
    middle = round(latitude + dlat * (ny - 1) / 2, 6)
    centre = round(longitude + dlon * (nx - 1) / 2, 6)
    metres = math.radians(1.0) * RADIUS
    along = metres * math.cos(math.radians(middle))
    crs = f"+proj=eqc +lat_ts={middle} +lat_0=0 +lon_0={centre} +R={RADIUS:.0f} +units=m"
    x0, y0, dx, dy = (longitude - centre) * along, latitude * metres, dlon * along, dlat * metres
    return Grid(crs=crs, x0=x0, y0=y0, dx=dx, dy=dy, nx=nx, ny=ny)


def rotated_grid(
    pole: tuple[float, float],
    west: float,
    south: float,
    steps: tuple[float, float],
    count: tuple[int, int],
) -> Grid:
    """Return the grid in degrees around a rotated pole, as lengths along its equator.

    ``pole`` is the latitude and longitude of the southern one. The rotated equator crosses such
    grids, so that their degrees are nearly lengths.
    """
    latitude, longitude = pole
    crs = (
        f"+proj=ob_tran +o_proj=eqc +o_lat_p={-latitude:.9g} +o_lon_p=0 +lon_0={longitude:.9g} "
        f"+R={RADIUS:.0f} +units=m"
    )
    degree = math.radians(1.0) * RADIUS
    west = (west + 180.0) % 360.0 - 180.0
    x0, y0, dx, dy = (degrees * degree for degrees in (west, south, *steps))
    return Grid(crs=crs, x0=x0, y0=y0, dx=dx, dy=dy, nx=count[0], ny=count[1])
