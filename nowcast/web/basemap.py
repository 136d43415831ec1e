"""The base map with coastlines, borders, degrees and range rings, and the rain cells on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
from numpy.typing import NDArray

from nowcast.cells import Cell, track_cells
from nowcast.cells.write import read_cells
from nowcast.plot.place import border_lines, degrees_between, ring_step
from nowcast.rain.cf import rain_dataset
from nowcast.rain.grid import Grid
from nowcast.web.answers import iso

if TYPE_CHECKING:
    from nowcast.web.case import Case


#: Points along a parallel, a meridian or a ring; nodes to find the degrees of a click.
POINTS, NODES = 64, 33


def basemap_of(case: Case) -> dict[str, Any]:
    """Return the base map of a case: its grid's base map, and ``areas``, outlines by name."""
    drawn = {}
    if case.areas is not None:
        lines = outlines(case.grid, case.areas.geometries)
        drawn = dict(zip(case.areas.names, lines, strict=True))
    return {**basemap(case.grid, case.radar), "areas": drawn}


@lru_cache(maxsize=1)
def basemap(grid: Grid, radar: bool) -> dict[str, Any]:
    """Return the base map of a grid, with range rings if a radar is at its origin.

    - returns: ``lines``: by kind (coast, border, degrees, ring), each a list of x, y, x, y, ... in
      cells from the north-western corner; ``labels``: texts, first of degrees in the order of
      their lines, then of rings with their places; ``nodes``: latitudes and longitudes of
      `NODES` x `NODES` points from corner to corner, the north-western one first.
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
    to_grid = grid.from_degrees()

    def rings(geometry: dict[str, Any]) -> list[Any]:
        coordinates = geometry["coordinates"]
        parts = {"Polygon": [coordinates], "MultiPolygon": coordinates}.get(geometry["type"], [])
        return [ring for part in parts for ring in part]

    return [
        [
            _cells(grid, np.column_stack(to_grid(*np.array(ring)[:, :2].T)))
            for ring in rings(geometry)
        ]
        for geometry in geometries
    ]


def _cells(grid: Grid, line: NDArray[np.float64]) -> list[float]:
    """Return points (n, 2) in metres as x, y, x, y, ... in cells, without repeated points."""
    x = (line[:, 0] - grid.x0) / grid.dx + 0.5
    y = grid.ny - 0.5 - (line[:, 1] - grid.y0) / grid.dy
    cells = np.stack([x, y], axis=1).round(1)
    moved = np.r_[True, (np.diff(cells, axis=0) != 0).any(axis=1)]
    return [float(value) for value in cells[moved & np.isfinite(cells).all(axis=1)].ravel()]


def _degrees(
    grid: Grid, latitude: NDArray[np.float64], longitude: NDArray[np.float64]
) -> tuple[list[list[float]], list[dict[str, Any]]]:
    """Return parallels and meridians in cells, and a label without a place for each."""
    lines: list[list[float]] = []
    labels: list[dict[str, Any]] = []
    bounds = [(float(d.min()), float(d.max())) for d in (latitude, longitude)]
    if min(latitude.shape) < 2 or bounds[1][1] - bounds[1][0] > 180:
        return lines, labels  # across the pole or the date line
    to_grid = grid.from_degrees(own_ellipsoid=True)
    for axis, letters in ((0, "SN"), (1, "WE")):
        low, high = bounds[1 - axis]
        beyond = 0.05 * (high - low)  # centres of cells do not reach the edge of the map
        along = np.linspace(low - beyond, high + beyond, POINTS)
        for level in degrees_between(*bounds[axis]):
            there = np.full(POINTS, level)
            x, y = to_grid(*((along, there) if axis == 0 else (there, along)))
            lines.append(_cells(grid, np.stack([x, y], axis=1)))
            text = f"{abs(level):g}°{letters[int(level > 0)] if level else ''}"
            labels.append({"text": text, "kind": "NE"[axis]})
    return lines, labels


#: Length of the drawn motion in seconds.
AHEAD = 1800.0


def cells(case: Case) -> dict[str, Any]:
    """Return the rain cells of each frame, highest rain first.

    They are read from the file of ``nowcast watch --also cells`` if it exists. Otherwise they are
    tracked here, in a second or two for a frame of 700 x 700.
    """
    if case.cells is not None and case.cells.exists():
        tracked = read_cells(case.cells)
    else:
        tracked = follow(case.grid, case.shown, case.observed[: case.past], case.rain)
    tracked.sort(key=lambda cell: -cell.max_mm_h)
    middle = np.array([(cell.longitude, cell.latitude) for cell in tracked]).reshape(-1, 2)
    course = np.array([(cell.direction_deg, cell.speed_m_s) for cell in tracked], float)
    ahead = np.empty_like(middle)
    if tracked:
        ahead[:, 0], ahead[:, 1], _ = pyproj.Geod(ellps="WGS84").fwd(
            *middle.T, np.nan_to_num(course[:, 0]), AHEAD * np.nan_to_num(course[:, 1])
        )
    ways = np.stack([middle, ahead], axis=1)
    past = defaultdict(list)
    for n in sorted(range(len(tracked)), key=lambda n: tracked[n].time):
        past[tracked[n].track].append((tracked[n].time, middle[n]))
    rings = [
        {
            "type": "Polygon",
            "coordinates": [
                *cell.outline, way,
                np.array([place for time, place in past[cell.track] if time <= cell.time]),
            ],
        }
        for cell, way in zip(tracked, ways, strict=True)
    ]  # fmt: skip
    frames: dict[str, list[dict[str, Any]]] = {iso(time): [] for time in case.shown}
    for cell, (*outline, way, trail) in zip(tracked, outlines(case.grid, rings), strict=True):
        if cell.time in frames:
            frames[cell.time].append(
                {
                    "track": cell.track, "highest": round(cell.max_mm_h, 2),
                    "area": round(cell.area_km2, 1), "speed": cell.speed_m_s,
                    "direction": cell.direction_deg, "age": cell.age_minutes,
                    "outline": outline, "way": None if cell.speed_m_s is None else way,
                    "trail": trail,
                }
            )  # fmt: skip
    return {"case": case.name, "frames": list(frames.values())}


def follow(grid: Grid, times: NDArray[np.datetime64], *fields: NDArray[Any]) -> list[Cell]:
    """Return the cells of consecutive fields (n, y, x), observed and forecast."""
    rain = np.concatenate(fields).astype(np.float32)
    attributes = {"title": "observed and forecast rain", "source": "nowcast"}
    return track_cells(rain_dataset(grid, times, rain, attributes={}, global_attributes=attributes))
