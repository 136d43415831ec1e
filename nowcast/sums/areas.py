"""Areas of a GeoJSON file, polygons and points with names, and means of fields over them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.rain.grid import Grid

#: Points along each side of a cell for its fraction inside a polygon.
POINTS = 4


@dataclass(frozen=True)
class Areas:
    """Areas with names, and each area's fractions of the cells."""

    names: tuple[str, ...]
    #: Of each area: positions in the flat grid (n,), and shares of these cells (n,).
    cells: list[tuple[NDArray[np.int64], NDArray[np.float64]]]
    #: Sizes of the whole areas in cells, also of parts outside the grid, (area,).
    sizes: NDArray[np.float64]
    geometries: tuple[dict[str, Any], ...]  #: As they are in the file: longitudes and latitudes.

    @classmethod
    def read(cls, path: str | os.PathLike[str], grid: Grid) -> Areas:
        """Read the features of a GeoJSON file (RFC 7946) and map them to a grid.

        A polygon has fractions of the cells that it covers, a point has its cell. Names are the
        features' property ``name``, else their ``id``, else ``area 1`` and so on. Raises DataError
        if the file is invalid, a name occurs twice, or no area touches the grid.
        """
        to_grid = grid.from_degrees()
        names: list[str] = []
        cells, sizes, geometries = [], [], []
        for number, feature in enumerate(_features(Path(path)), 1):
            properties = feature.get("properties") or {}
            name = str(properties.get("name") or feature.get("id") or f"area {number}")
            if name in names:
                raise DataError(f"{path}: expected each name once, found {name!r} twice")
            names.append(name)
            geometries.append(feature.get("geometry") or {})
            try:
                inside, size = _laid(geometries[-1], grid, to_grid)
            except (KeyError, TypeError, ValueError, IndexError) as error:
                raise DataError(
                    f"{path}: {name}: expected a Point, Polygon or MultiPolygon of longitudes and "
                    f"latitudes, found something else ({error}); see RFC 7946"
                ) from error
            position = np.flatnonzero(inside)
            cells.append((position, inside.ravel()[position]))
            sizes.append(max(size, inside.sum()))
        if not any(len(position) for position, _ in cells):
            raise DataError(
                f"{path}: expected an area on the grid of {grid}, found none of {len(names)}; "
                "coordinates are longitude first, then latitude, in degrees"
            )
        return cls(tuple(names), cells, np.asarray(sizes), tuple(geometries))

    def mean(self, fields: NDArray[np.floating]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return means over areas of fields (..., y, x), and the known fraction of each area.

        Both are (..., area) float32; the mean is NaN for an area without data.
        """
        flat = fields.reshape(*fields.shape[:-2], -1)
        mean = np.full((*flat.shape[:-1], len(self.names)), np.nan, np.float32)
        known = np.zeros_like(mean)
        for n, (position, share) in enumerate(self.cells):
            values = flat[..., position]
            weight = np.where(np.isfinite(values), share, 0)
            total = weight.sum(-1)
            sums = (np.nan_to_num(values) * weight).sum(-1)
            mean[..., n] = np.where(total > 0, sums / np.maximum(total, 1e-9), np.nan)
            known[..., n] = total / self.sizes[n]
        return mean, known

    def alone(self, n: int) -> Areas:
        """Return one of the areas."""
        return Areas(
            self.names[n : n + 1], self.cells[n : n + 1], self.sizes[n : n + 1],
            self.geometries[n : n + 1],
        )  # fmt: skip

    def maximum(self, fields: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return maxima over areas of fields (..., y, x), (..., area); NaN where nothing is known.

        Each cell that an area touches counts, whatever its fraction.
        """
        flat = fields.reshape(*fields.shape[:-2], -1)
        most = np.full((*flat.shape[:-1], len(self.names)), np.nan, np.float32)
        for n, (position, _) in enumerate(self.cells):
            if len(position):
                most[..., n] = np.fmax.reduce(flat[..., position], axis=-1)
        return most


def _features(path: Path) -> list[dict[str, Any]]:
    try:
        text = json.loads(path.read_text())
        features = text["features"] if text["type"] == "FeatureCollection" else [text]
        if not features or not all(feature["type"] == "Feature" for feature in features):
            raise ValueError("no Feature")
    except OSError as error:
        raise DataError(f"{path}: expected a GeoJSON file, found {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}: expected GeoJSON with a Feature or a FeatureCollection, found something else "
            f"({error})"
        ) from error
    return features


def _laid(
    geometry: dict[str, Any], grid: Grid, to_grid: Callable[..., Any]
) -> tuple[NDArray[np.float64], float]:
    """Return a geometry's fraction of each cell (y, x), and its size in cells."""
    kind, coordinates = geometry["type"], geometry["coordinates"]
    inside = np.zeros(grid.shape)
    if kind == "Point":
        ((column, row),) = _placed([coordinates], grid, to_grid)
        _fill(inside, row, column)
        return inside, 1.0
    if kind not in ("Polygon", "MultiPolygon"):
        raise ValueError(f"a {kind}")
    size = 0.0
    for rings in [coordinates] if kind == "Polygon" else coordinates:
        placed = [_placed(ring, grid, to_grid) for ring in rings]
        outer, *holes = (_area(ring) for ring in placed)
        size += outer - sum(holes)
        _add_shares(inside, placed)
    if not inside.any():
        # So small that it lies between the points: the cell in its middle stands for it.
        _fill(inside, *placed[0][:-1].mean(0)[::-1])
        size = max(size, 1.0) if inside.any() else size
    return inside, size


def _placed(ring: Any, grid: Grid, to_grid: Callable[..., Any]) -> NDArray[np.float64]:
    """Return the corners of a ring as (column, row) in cells, (n, 2)."""
    degrees = np.array([corner[:2] for corner in ring], np.float64)
    if not (np.abs(degrees) <= (360, 90)).all():
        raise ValueError("a coordinate beyond 360 or 90 degrees")
    x, y = to_grid(degrees[:, 0], degrees[:, 1])
    return np.column_stack([(x - grid.x0) / grid.dx, (y - grid.y0) / grid.dy])


def _area(ring: NDArray[np.float64]) -> float:
    x, y = ring.T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def _fill(inside: NDArray[np.float64], row: float, column: float) -> None:
    i, j = round(float(row)), round(float(column))
    if 0 <= i < inside.shape[0] and 0 <= j < inside.shape[1]:
        inside[i, j] = 1


def _add_shares(inside: NDArray[np.float64], rings: list[NDArray[np.float64]]) -> None:
    """Add a polygon's fraction of each cell; parts outside the grid are ignored."""
    low, high = np.floor(rings[0].min(0)), np.ceil(rings[0].max(0)) + 1
    (left, bottom), (right, top) = np.clip([low, high], 0, inside.shape[::-1]).astype(int)
    if right <= left or top <= bottom:
        return
    offsets = (np.arange(POINTS) + 0.5) / POINTS - 0.5
    x = (np.arange(left, right)[:, None] + offsets).ravel()
    y = (np.arange(bottom, top)[:, None] + offsets).ravel()
    points = np.column_stack([axis.ravel() for axis in np.meshgrid(x, y)])
    share = (
        inside_of(rings, points).reshape(top - bottom, POINTS, right - left, POINTS).mean((1, 3))
    )
    inside[bottom:top, left:right] += share


def inside_of(
    rings: Iterable[NDArray[np.float64]], points: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return a mask of the points (n, 2) inside of an odd number of rings."""
    from matplotlib.path import Path as Outline

    within = np.zeros(len(points), bool)
    for ring in rings:
        within ^= Outline(ring).contains_points(points)
    return within
