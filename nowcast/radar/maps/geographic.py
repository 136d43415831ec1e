"""Grids in steps of degrees, as grids in metres with the same cells."""

from __future__ import annotations

import math

from nowcast.rain.grid import Grid

RADIUS = 6_371_007.0  # of the sphere with the earth's surface, metres


def geographic_grid(
    longitude: float, latitude: float, dlon: float, dlat: float, nx: int, ny: int
) -> Grid:
    """Return the grid of cells in equal steps of longitude and latitude.

    The projection is the equidistant cylindrical one with its true scale along the middle latitude,
    in which degrees are lengths: the cells stay what they are, nothing is interpolated. Away from
    the middle, x is stretched by cos(middle) / cos(latitude).

    Parameters
    ----------
    longitude, latitude : float
        Centre of the south-western cell, degrees.
    dlon, dlat : float
        Steps, degrees, positive.
    nx, ny : int
        Number of cells.

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
    return Grid(
        crs=f"+proj=eqc +lat_ts={middle} +lat_0=0 +lon_0={centre} +R={RADIUS:.0f} +units=m",
        x0=(longitude - centre) * along,
        y0=latitude * metres,
        dx=dlon * along,
        dy=dlat * metres,
        nx=nx,
        ny=ny,
    )
