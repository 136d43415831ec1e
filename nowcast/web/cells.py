"""Rain cells of what is shown, outlined on the grid."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nowcast.cells import Cell, track_cells
from nowcast.cells.write import read_cells
from nowcast.rain.cf import rain_dataset
from nowcast.rain.grid import Grid
from nowcast.web.answers import iso
from nowcast.web.basemap import outlines

if TYPE_CHECKING:
    from nowcast.web.case import Case

#: Seconds of motion that are drawn.
AHEAD = 1800.0


def cells(case: Case) -> dict[str, Any]:
    """Return the rain cells of each frame, highest rain first.

    Those that ``nowcast watch --also cells`` wrote beside the forecast, where they are; otherwise
    they are tracked here, a second or two for a frame of 700 x 700.
    """
    import pyproj

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
    """Return the cells of fields (n, y, x) that follow each other, observed ones and forecasts."""
    rain = np.concatenate(fields).astype(np.float32)
    told = {"title": "observed and forecast rain", "source": "nowcast"}
    return track_cells(rain_dataset(grid, times, rain, attributes={}, global_attributes=told))
