"""The motion of a cell: its track ahead, and its arrival at places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyproj

from nowcast.cells.track import Cell
from nowcast.rain.texts import utc_text
from nowcast.sums.areas import inside_of

#: Minutes ahead of the points of a track.
LEADS = (15, 30, 45, 60)
#: Two thirds of storms lie within so many km of the point, at once and more with each minute: of
#: the simulated storms of ``python -m ci.bench.cells``, 1.7, 2.9, 4.5 and 6.8 km at `LEADS`.
MISS_AT_ONCE, MISS_A_MINUTE = 0.1, 0.108
#: Metres of a degree of latitude.
DEGREE = 111_195.0


class Ahead(NamedTuple):
    """A point of a cell's track ahead; two thirds of storms lie within its radius."""

    minutes: int
    longitude: float
    latitude: float
    radius_km: float


class Arrival(NamedTuple):
    """Rain of a cell at a place if its motion stays; with the numbers of the cell and its track.

    Begin and end are in UTC; the end is at most the last minute of the search.
    """

    place: str
    track: int
    cell: int
    begins: np.datetime64
    ends: np.datetime64


def track_ahead(cell: Cell) -> tuple[Ahead, ...]:
    """Return the points of a cell's track at `LEADS`; none without a known motion."""
    if cell.speed_m_s is None or cell.direction_deg is None:
        return ()
    metres = 60.0 * cell.speed_m_s * np.array(LEADS)
    same = np.ones(len(LEADS))
    longitude, latitude, _ = pyproj.Geod(ellps="WGS84").fwd(
        cell.longitude * same, cell.latitude * same, cell.direction_deg * same, metres
    )
    return tuple(
        Ahead(lead, float(east), float(north), MISS_AT_ONCE + MISS_A_MINUTE * lead)
        for lead, east, north in zip(LEADS, longitude, latitude, strict=True)
    )


def arrivals(
    cells: Sequence[Cell], places: Mapping[str, tuple[float, float]], minutes: int = 60
) -> list[Arrival]:
    """Return the arrivals at places of the cells of the last frame, by place, then by time.

    Cells are from `nowcast.track_cells`; places are latitude and longitude in degrees by name;
    ``minutes`` is the time searched ahead. Places that no cell reaches have no arrivals.
    """
    last = max((cell.time for cell in cells), default="")
    reached = []
    for name, (latitude, longitude) in places.items():
        scale = DEGREE * np.array([np.cos(np.radians(latitude)), 1.0])
        for cell in cells:
            if cell.time != last or cell.speed_m_s is None or cell.direction_deg is None:
                continue
            angle = np.radians(cell.direction_deg)
            way = 60.0 * cell.speed_m_s * np.array([np.sin(angle), np.cos(angle)])
            # In the cell's frame, the place moves the opposite way.
            path = -way * np.arange(minutes + 1)[:, np.newaxis]
            rings = ((ring - [longitude, latitude]) * scale for ring in cell.outline)
            inside = np.flatnonzero(inside_of(rings, path))
            if inside.size:
                start = np.datetime64(cell.time.removesuffix("Z"), "s")
                begins, ends = (start + np.timedelta64(60 * int(inside[k]), "s") for k in (0, -1))
                reached.append(Arrival(name, cell.track, cell.id, begins, ends))
    order = {name: number for number, name in enumerate(places)}
    return sorted(
        reached, key=lambda arrival: (order[arrival.place], arrival.begins, arrival.track)
    )


def described(arrival: Arrival) -> str:
    """Return a line of CSV: place, track, cell, begin and end of the rain in UTC."""
    times = f"{utc_text(arrival.begins)}Z,{utc_text(arrival.ends)}Z"
    return f"{arrival.place},{arrival.track},{arrival.cell},{times}"
