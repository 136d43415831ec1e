"""The base map: coastlines, borders, degrees and range rings, in cells of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nowcast.plot.borders import border_lines
from nowcast.plot.place import degrees_between, ring_step

if TYPE_CHECKING:
    from nowcast.rain.grid import Grid
    from nowcast.web.case import Case

#: Points along a parallel, a meridian or a ring; nodes by which a click finds its degrees.
POINTS, NODES = 64, 33


def basemap_of(case: Case) -> dict[str, Any]:
    """Return the base map of a case: that of its grid, and ``areas``, outlines by name."""
    drawn = {}
    if case.areas is not None:
        lines = outlines(case.grid, case.areas.geometries)
        drawn = dict(zip(case.areas.names, lines, strict=True))
    return {**basemap(case.grid, case.radar), "areas": drawn}


@lru_cache(maxsize=1)
def basemap(grid: Grid, radar: bool) -> dict[str, Any]:
    """Return the base map of a grid, with range rings where a radar is at its origin.

    Returns
    -------
    dict
        ``lines``: by kind (coast, border, degrees, ring), each a list of x, y, x, y, ... in cells
        from the north-western corner; ``labels``: texts, first those of degrees in the order of
        their lines, then those of rings with their places; ``nodes``: latitudes and
        longitudes of `NODES` x `NODES` points from corner to corner, the north-western one first.
    """
    latitude, longitude = grid.latitude_longitude()
    lines = {
        kind: [cells for line in many for cells in [_cells(grid, line)] if len(cells) > 2]
        for kind, many in border_lines(grid).items()
    }
    lines["degrees"], labels = _degrees(grid, latitude, longitude)
    lines["ring"] = []
    if radar:
        reach = float(max(np.abs(grid.x).max(), np.abs(grid.y).max())) / 1e3
        step = ring_step(reach)
        turn = np.linspace(0, 2 * np.pi, POINTS)
        for radius in np.arange(step, reach + step / 2, step) * 1e3:
            ring = np.stack([np.sin(turn), np.cos(turn)], axis=1) * radius
            lines["ring"].append(_cells(grid, ring))
            x, y = _cells(grid, ring[:1])
            labels.append({"text": f"{radius / 1e3:g} km", "x": x, "y": y, "kind": "ring"})
    rows = np.linspace(grid.ny - 1, 0, NODES).round().astype(int)
    columns = np.linspace(0, grid.nx - 1, NODES).round().astype(int)
    return {
        "nx": grid.nx,
        "ny": grid.ny,
        "dx": grid.dx,
        "dy": grid.dy,
        "lines": lines,
        "labels": labels,
        "rows": (grid.ny - 1 - rows + 0.5).tolist(),
        "columns": (columns + 0.5).tolist(),
        "latitude": latitude[np.ix_(rows, columns)].round(5).tolist(),
        "longitude": longitude[np.ix_(rows, columns)].round(5).tolist(),
    }


def outlines(grid: Grid, geometries: Sequence[dict[str, Any]]) -> list[list[list[float]]]:
    """Return the rings of each Polygon or MultiPolygon in degrees as x, y, x, y, ... in cells."""
    import pyproj

    to_grid = pyproj.Transformer.from_crs("EPSG:4326", grid.projection, always_xy=True)

    def rings(geometry: dict[str, Any]) -> list[Any]:
        coordinates = geometry["coordinates"]
        parts = {"Polygon": [coordinates], "MultiPolygon": coordinates}.get(geometry["type"], [])
        return [ring for part in parts for ring in part]

    return [
        [
            _cells(grid, np.column_stack(to_grid.transform(*np.array(ring)[:, :2].T)))
            for ring in rings(geometry)
        ]
        for geometry in geometries
    ]


def _cells(grid: Grid, line: NDArray[np.float64]) -> list[float]:
    """Return points (n, 2) in metres as x, y, x, y, ... in cells, without those in one place."""
    x = (line[:, 0] - grid.x0) / grid.dx + 0.5
    y = grid.ny - 0.5 - (line[:, 1] - grid.y0) / grid.dy
    cells = np.stack([x, y], axis=1).round(1)
    moved = np.r_[True, (np.diff(cells, axis=0) != 0).any(axis=1)]
    return [float(value) for value in cells[moved & np.isfinite(cells).all(axis=1)].ravel()]


def _degrees(
    grid: Grid, latitude: NDArray[np.float64], longitude: NDArray[np.float64]
) -> tuple[list[list[float]], list[dict[str, Any]]]:
    """Return parallels and meridians in cells, and a label for each, which has no place yet."""
    import pyproj

    lines: list[list[float]] = []
    labels: list[dict[str, Any]] = []
    ends = [(float(d.min()), float(d.max())) for d in (latitude, longitude)]
    if min(latitude.shape) < 2 or ends[1][1] - ends[1][0] > 180:
        return lines, labels  # across the pole or the date line
    to_grid = pyproj.Transformer.from_crs(
        grid.projection.geodetic_crs, grid.projection, always_xy=True
    )
    for axis, letters in ((0, "SN"), (1, "WE")):
        low, high = ends[1 - axis]
        beyond = 0.05 * (high - low)  # centres of cells do not reach the edge of the map
        along = np.linspace(low - beyond, high + beyond, POINTS)
        for level in degrees_between(*ends[axis]):
            there = np.full(POINTS, level)
            x, y = to_grid.transform(*((along, there) if axis == 0 else (there, along)))
            lines.append(_cells(grid, np.stack([x, y], axis=1)))
            text = f"{abs(level):g}°{letters[int(level > 0)] if level else ''}"
            labels.append({"text": text, "kind": "NE"[axis]})
    return lines, labels
