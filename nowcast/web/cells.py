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
    """Return the rain cells of each frame, highest rain first; they are tracked once.

    Some tenths of a second for a frame of 700 x 700.
    """
    if not case.cells:
        case.cells[:] = _tracked(case)
    return {"case": case.name, "frames": case.cells}


def _tracked(case: Case) -> list[list[dict[str, Any]]]:
    import pyproj

    from nowcast.cells import track_cells

    fields = np.concatenate([case.observed[: case.past], case.rain]).astype(np.float32)
    described = {"title": "observed and forecast rain", "source": "nowcast serve"}
    tracked = track_cells(
        rain_dataset(case.grid, case.shown, fields, attributes={}, global_attributes=described)
    )
    ellipsoid = pyproj.Geod(ellps="WGS84")
    frames: dict[str, list[dict[str, Any]]] = {iso(time): [] for time in case.shown}
    for cell in sorted(tracked, key=lambda cell: -cell.max_mm_h):
        parts = [*cell.outline]
        if cell.speed_m_s is not None and cell.direction_deg is not None:
            longitude, latitude, _ = ellipsoid.fwd(
                cell.longitude, cell.latitude, cell.direction_deg, AHEAD * cell.speed_m_s
            )
            parts.append(np.array([[cell.longitude, cell.latitude], [longitude, latitude]]))
        (drawn,) = outlines(case.grid, [{"type": "Polygon", "coordinates": parts}])
        rings = len(cell.outline)
        frames[cell.time].append(
            {
                "track": cell.track, "highest": round(cell.max_mm_h, 2),
                "area": round(cell.area_km2, 1), "speed": cell.speed_m_s,
                "direction": cell.direction_deg, "age": cell.age_minutes,
                "outline": drawn[:rings], "way": drawn[rings] if len(drawn) > rings else None,
            }
        )  # fmt: skip
    return list(frames.values())
