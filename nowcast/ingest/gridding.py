"""Radar gates on a Cartesian grid: precomputed weights that turn a sweep into a map.

A cell with gates gets their mean, an areal mean if gates are smaller than cells. A cell without
gates, far away where rays are farther apart than cells, is interpolated between the two rays and
two gates around it. Means are of rain rate (or Z), never dBZ. The shares of missing, dry and wet
cells are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyproj
from numpy.typing import NDArray

from nowcast.radar.header import Site
from nowcast.radar.polar.geometry import Geometry
from nowcast.rain.grid import Grid

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# A ray further from its neighbour than this many usual steps has a gap next to it: no data there.
LARGEST_GAP = 2.5
# A cell is missing when more than this share of its weight is.
LARGEST_MISSING = 0.5
# Distance and height of the beam, metres, that lower the quality to 1/e.
FAR, HIGH = 80e3, 2e3
# Last part of a radar's range in which its quality goes to nothing, which is this much.
FADING, LEAST_QUALITY = 0.15, 1e-3


@dataclass(frozen=True)
class GateWeights:
    """Weights of a sweep's gates for each cell of a grid."""

    #: (ny * nx, rays * gates); rows add up to 1, or are empty where the radar does not see.
    matrix: csr_array
    shape: tuple[int, int]  #: Of the grid, (ny, nx).

    def apply(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the map (ny, nx) of a sweep's values (rays, gates), float32.

        NaN does not count in means. A cell is NaN if more than half of it is missing, or if the
        radar does not see it.
        """
        flat = np.ascontiguousarray(values, np.float32).reshape(-1)
        known = ~np.isnan(flat)
        total, weight = (
            self.matrix @ np.where(known, flat, 0),
            self.matrix @ known.astype(np.float32),
        )
        few = weight < np.float32(1.0 - LARGEST_MISSING - 1e-4)
        total[few] = np.nan
        return np.divide(total, weight, out=total, where=~few).reshape(self.shape)

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Cells that the radar sees, (ny, nx)."""
        return (np.diff(self.matrix.indptr) > 0).reshape(self.shape)


@lru_cache(maxsize=4)
def gate_weights(geometry: Geometry, grid: Grid) -> GateWeights:
    """Return the weights that put a sweep of this geometry on the grid.

    Cells beyond the last gate are not seen. Cells nearer than the first gate (a few kilometres at
    most) get the first gate of their direction.
    """
    from scipy.sparse import csr_array

    azimuth = np.asarray(geometry.azimuth)
    cell, gate = _gates_in_cells(geometry, grid, azimuth, geometry.ground_range(geometry.range))
    count = np.bincount(cell, minlength=grid.nx * grid.ny)
    weight = (1.0 / count[cell]).astype(np.float32)

    empty = np.flatnonzero(count == 0)
    rows, columns, weights = _between_gates(geometry, grid, azimuth, empty)
    matrix = csr_array(
        (
            np.concatenate([weight, weights]),
            (np.concatenate([cell, rows]), np.concatenate([gate, columns])),
        ),
        shape=(grid.nx * grid.ny, azimuth.size * geometry.gates),
    )
    return GateWeights(matrix=matrix, shape=grid.shape)


def _radar_plane(site: Site) -> str:
    return Grid.around(site.latitude, site.longitude, size=(1, 1), spacing=1.0).crs


def _from_radar(
    site: Site, grid: Grid, cells: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the places of cells (flat indices) in metres east and north of a radar."""
    x, y = grid.x[cells % grid.nx], grid.y[cells // grid.nx]
    plane = _radar_plane(site)
    if plane != grid.crs:
        x, y = pyproj.Transformer.from_crs(grid.projection, plane, always_xy=True).transform(x, y)
    return x, y


@lru_cache(maxsize=16)
def beam_quality(geometry: Geometry, grid: Grid, *, by_height: bool = True) -> NDArray[np.float32]:
    """Return the quality of a sweep for the rain at the ground in each cell, (ny, nx) float32.

    It is 1 at the radar and falls with the distance and, unless ``by_height`` is false, with the
    height of the beam, like the weights of MRMS's mosaic (Qi and Zhang, 2017, J. Hydrometeor. 18,
    1465-1487): exp(-(d / 80 km)^2 - (h / 2 km)^2). It falls to 0 towards the last gate, so that a
    mosaic has no edge at the end of a radar's range.
    """
    x, y = _from_radar(geometry.site, grid, np.arange(grid.nx * grid.ny))
    ground = np.hypot(x, y)
    quality = np.exp(-np.square(ground / FAR))
    if by_height:
        quality *= np.exp(-np.square(geometry.height(ground) / HIGH))
    last = geometry.ground_range(np.array(geometry.first + geometry.step * (geometry.gates - 1)))
    quality *= np.clip((1.0 - ground / last) / FADING, 0.0, 1.0)
    return np.maximum(quality, LEAST_QUALITY).astype(np.float32).reshape(grid.shape)


def _gates_in_cells(
    geometry: Geometry, grid: Grid, azimuth: NDArray[np.float64], ground: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cell and the index of each gate inside of the grid."""
    angle = np.radians(azimuth)[:, np.newaxis]
    x, y = ground * np.sin(angle), ground * np.cos(angle)
    plane = _radar_plane(geometry.site)
    if plane != grid.crs:
        x, y = pyproj.Transformer.from_crs(plane, grid.projection, always_xy=True).transform(x, y)
    column = np.floor((x - grid.x0) / grid.dx + 0.5)
    row = np.floor((y - grid.y0) / grid.dy + 0.5)
    inside = (column >= 0) & (column < grid.nx) & (row >= 0) & (row < grid.ny)
    gate = np.flatnonzero(inside)
    cell = row[inside].astype(np.int64) * grid.nx + column[inside].astype(np.int64)
    return cell, gate


def _between_gates(
    geometry: Geometry, grid: Grid, azimuth: NDArray[np.float64], cells: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Return rows, columns and weights of cells between rays: bilinear in azimuth and range."""
    x, y = _from_radar(geometry.site, grid, cells)
    position = (geometry.slant_range(np.hypot(x, y)) - geometry.first) / geometry.step
    angle = np.degrees(np.arctan2(x, y)) % 360.0

    after = np.searchsorted(azimuth, angle)
    left, right = (after - 1) % azimuth.size, after % azimuth.size
    width = (azimuth[right] - azimuth[left]) % 360.0
    usual = float(np.median(np.diff(azimuth))) if azimuth.size > 1 else 360.0
    # Half a gate beyond the middle of the last one its echo ends.
    seen = (position <= geometry.gates - 0.5) & (width <= LARGEST_GAP * usual)
    if azimuth.size < 2:
        seen[:] = False
    cells, position, angle = cells[seen], position[seen], angle[seen]
    left, right, width = left[seen], right[seen], width[seen]

    along = np.clip(position, 0.0, geometry.gates - 1.0)
    near = np.minimum(along.astype(np.int64), max(geometry.gates - 2, 0))
    far = np.minimum(near + 1, geometry.gates - 1)
    radial = along - near
    turn = ((angle - azimuth[left]) % 360.0) / np.maximum(width, 1e-9)

    rows, columns, weights = [], [], []
    for ray, share in ((left, 1.0 - turn), (right, turn)):
        for gate, part in ((near, 1.0 - radial), (far, radial)):
            rows.append(cells)
            columns.append(ray * geometry.gates + gate)
            weights.append((share * part).astype(np.float32))
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(weights)


# Rain rate in mm h-1 from which on a cell is wet.
WET = 0.1


@dataclass(frozen=True)
class Coverage:
    """Numbers of missing cells, and of cells below and from 0.1 mm h-1 on; they add up over times.

    Examples
    --------
    >>> Coverage.of(np.array([[np.nan, 0.0], [0.0, 5.0]], np.float32)).shares()
    (25.0, 50.0, 25.0)
    """

    missing: int = 0
    dry: int = 0
    wet: int = 0

    @classmethod
    def of(cls, rain: NDArray[np.float32], reached: NDArray[np.bool_] | None = None) -> Coverage:
        """Return the numbers for a map in mm h-1, of the cells that are ``reached`` (all)."""
        cells = rain if reached is None else rain[reached]
        wet = int(np.count_nonzero(cells >= WET))
        missing = int(np.count_nonzero(np.isnan(cells)))
        return cls(missing, cells.size - missing - wet, wet)

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.missing + other.missing, self.dry + other.dry, self.wet + other.wet)

    def shares(self) -> tuple[float, float, float]:
        """Return the percentages of missing, dry and wet cells; zeros without cells."""
        total = max(self.missing + self.dry + self.wet, 1)
        return 100.0 * self.missing / total, 100.0 * self.dry / total, 100.0 * self.wet / total

    def __str__(self) -> str:
        missing, dry, wet = self.shares()
        return f"{missing:.1f} % missing, {dry:.1f} % dry, {wet:.1f} % wet ({WET:g} mm/h and more)"
