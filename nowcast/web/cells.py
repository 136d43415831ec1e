"""Rain cells of what is shown, outlined on the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nowcast.rain.cf import rain_dataset
from nowcast.web.answers import iso
from nowcast.web.basemap import outlines

if TYPE_CHECKING:
    from nowcast.web.case import Case

#: Seconds of motion that are drawn.
AHEAD = 1800.0


def cells(case: Case) -> dict[str, Any]:
    """Return the rain cells of each frame, highest rain first.

    A second or two for a frame of 700 x 700.
    """
    import pyproj

    from nowcast.cells import track_cells

    fields = np.concatenate([case.observed[: case.past], case.rain]).astype(np.float32)
    described = {"title": "observed and forecast rain", "source": "nowcast serve"}
    tracked = track_cells(
        rain_dataset(case.grid, case.shown, fields, attributes={}, global_attributes=described)
    )
    tracked.sort(key=lambda cell: -cell.max_mm_h)
    middle = np.array([(cell.longitude, cell.latitude) for cell in tracked]).reshape(-1, 2)
    course = np.array([(cell.direction_deg, cell.speed_m_s) for cell in tracked], float)
    ahead = np.empty_like(middle)
    if tracked:
        ahead[:, 0], ahead[:, 1], _ = pyproj.Geod(ellps="WGS84").fwd(
            *middle.T, np.nan_to_num(course[:, 0]), AHEAD * np.nan_to_num(course[:, 1])
        )
    ways = np.stack([middle, ahead], axis=1)
    rings = [
        {"type": "Polygon", "coordinates": [*cell.outline, way]}
        for cell, way in zip(tracked, ways, strict=True)
    ]
    frames: dict[str, list[dict[str, Any]]] = {iso(time): [] for time in case.shown}
    for cell, (*outline, way) in zip(tracked, outlines(case.grid, rings), strict=True):
        frames[cell.time].append(
            {
                "track": cell.track, "highest": round(cell.max_mm_h, 2),
                "area": round(cell.area_km2, 1), "speed": cell.speed_m_s,
                "direction": cell.direction_deg, "age": cell.age_minutes,
                "outline": outline, "way": None if cell.speed_m_s is None else way,
            }
        )  # fmt: skip
    return {"case": case.name, "frames": list(frames.values())}
