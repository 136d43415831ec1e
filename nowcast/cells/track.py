"""Cells followed in time: a frame's cells, moved along the motion, meet the next frame's cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyproj
import xarray as xr
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from nowcast.cells.outline import label_cells, rings
from nowcast.rain.grid import Grid, mean_spacing
from nowcast.rain.identity import path_of
from nowcast.rain.store import in_order
from nowcast.sums.between import motion_between

Float = NDArray[np.float32]
Labels = NDArray[np.int32]

#: Least overlap of two cells, as a fraction of the smaller one, for one to come from the other.
OVERLAP = 0.3
#: Largest time in minutes between two frames for cells to be followed.
BRIDGE = 30.0
#: Length of the past in minutes.
WINDOW = 40.0
#: Km that a middle is uncertain by, and km a minute by which cells move unlike the rain in them.
MIDDLE_ERROR, OWN_MOTION = 0.7, 0.15
#: Share that a cell's rain is uncertain by, and what trends of the logarithm are usual, a minute.
VOLUME_ERROR, OWN_TREND = 0.25, 0.02


class Past(NamedTuple):
    """A cell's last frames, oldest first."""

    ages: tuple[float, ...] = ()  #: Minutes before now.
    places: tuple[tuple[float, float], ...] = ()  #: Row and column of the middle.
    volumes: tuple[float, ...] = ()  #: m3 h-1.

    def aged(self, minutes: float) -> Past:
        """Return the past some ``minutes`` later, without frames that are too old."""
        ages = [age + minutes for age in self.ages]
        count = sum(age <= WINDOW for age in ages)
        drop = len(ages) - count
        return Past(tuple(ages[drop:]), self.places[drop:], self.volumes[drop:])

    def with_now(self, row: float, column: float, volume: float) -> Past:
        """Return the past with the present frame at its end."""
        return Past((*self.ages, 0.0), (*self.places, (row, column)), (*self.volumes, volume))

    def motion(self, field: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the motion in cells per minute, rows and columns, (2,) float64.

        It is the slope of a line through the middles, pulled to the ``field``'s motion in the cell
        by the middles' uncertainty: two frames have little weight, five have much.
        """
        hold = (MIDDLE_ERROR / OWN_MOTION) ** 2
        slope, weight = _slope(self.ages, np.array(self.places))
        return np.asarray((weight * slope + hold * field) / (weight + hold))

    def trend(self) -> float | None:
        """Return the change of rain in an hour relative to the present; None without a past."""
        if len(self.ages) < 2 or min(self.volumes) <= 0:
            return None
        hold = (VOLUME_ERROR / OWN_TREND) ** 2
        slope, weight = _slope(self.ages, np.log(self.volumes)[:, np.newaxis])
        return float(np.expm1(60 * slope[0] * weight / (weight + hold)))


def _slope(
    ages: tuple[float, ...], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return the slopes a minute of values (frame, k) by least squares, and their weight."""
    time = np.mean(ages) - np.array(ages)
    weight = float(time @ time)
    return time @ values / max(weight, 1e-9), weight


@dataclass(frozen=True)
class Cell:
    """A rain cell at one time.

    Attributes
    ----------
    id, track : int
        Number of this cell, and of the track that it belongs to.
    time : str
        ISO 8601, UTC.
    longitude, latitude : float
        Middle of its rain in degrees.
    x_km, y_km : float
        The same point on the grid.
    area_km2, mean_mm_h, max_mm_h, volume_m3_h : float
        Area, mean and largest rain rate, and the volume of rain per hour.
    trend_per_h : float or None
        Relative change of that volume in an hour, by the last 40 minutes: 1 doubles it, -0.5 halves
        it; None for a new cell.
    speed_m_s, direction_deg : float or None
        Speed, and the direction it moves to, clockwise from north; None if no other frame is near.
        Its middle's motion in the last 40 minutes; for a cell that is new, or merged or split just
        now, the motion of the rain in it.
    age_minutes : float
        Age since the first cell in the line of main parents, which share most of the echo with
        their child.
    parents : tuple of int
        Ids of the cells that it comes from: several after a merger; parts of a split share one.
    outline : tuple of ndarray, (n, 2) float64
        Outer ring and holes, longitude and latitude.
    """

    id: int
    track: int
    time: str
    longitude: float
    latitude: float
    x_km: float
    y_km: float
    area_km2: float
    mean_mm_h: float
    max_mm_h: float
    volume_m3_h: float
    trend_per_h: float | None
    speed_m_s: float | None
    direction_deg: float | None
    age_minutes: float
    parents: tuple[int, ...]
    outline: tuple[NDArray[np.float64], ...]


def track_cells(
    rain: xr.Dataset,
    *,
    threshold: float = 1.0,
    saddle: float = 0.8,
    smooth_km: float = 1.5,
    least_km2: float = 10.0,
    progress: Callable[[int, int], None] | None = None,
) -> list[Cell]:
    """Find the rain cells of all frames and follow them in time.

    Parameters
    ----------
    rain : Dataset
        A rain store (`nowcast.rain.store.open_rain`) or a forecast, ``rain_rate`` in mm h-1.
    threshold : float
        mm h-1 of the smoothed rain from which on it belongs to a cell.
    saddle : float
        Two peaks are two cells where rain between them falls below this share of the lower one.
    smooth_km : float
        Standard deviation of the Gaussian that rain is smoothed with before.
    least_km2 : float
        Smallest area of a cell.
    progress : callable, optional
        Called with the frames done and their number.

    Returns
    -------
    list of Cell
        In the order of time; empty when it is dry.

    Raises
    ------
    SettingsError, DataError
        When a setting is out of its bounds, or the dataset has no grid.
    """
    for name, value in (
        ("threshold", threshold),
        ("smooth_km", smooth_km),
        ("least_km2", least_km2),
    ):
        if not 0 < value < np.inf:
            raise SettingsError(f"{name}: expected a number above 0, found {value!r}")
    if not 0 < saddle < 1:
        raise SettingsError(f"saddle: expected a share between 0 and 1, found {saddle!r}")
    from scipy.ndimage import find_objects

    where, rain = path_of(rain), in_order(rain)
    grid = Grid.from_dataset(rain, where=where)
    spacing_km = mean_spacing(rain, where) / 1000
    if smooth_km > (side := max(grid.shape) * spacing_km):
        raise SettingsError(
            f"smooth_km: expected at most the grid's side, {side:g}, found {smooth_km!r}"
        )
    describe = _Describer(grid)
    cells: list[Cell] = []
    pasts: list[Past] = []
    before: Labels | None = None
    earlier: list[Cell] = []
    tracks = 0
    frames = _frames(rain, spacing_km)
    for done, (time, minutes, field, motion) in enumerate(frames, 1):
        labels = label_cells(
            field, threshold=threshold, saddle=saddle, smooth=smooth_km / spacing_km,
            least=least_km2 / (grid.dx * grid.dy / 1e6),
        )  # fmt: skip
        count = int(labels.max())
        shared = np.zeros((len(earlier), count))
        if before is not None and motion is not None and minutes is not None:
            shared = _shared(before, labels, motion, field, shared.shape)
        now: list[Cell] = []
        passed: list[Past] = []
        boxes = find_objects(labels)
        for k in range(count):
            parents = np.flatnonzero(shared[:, k])
            track, age, past = tracks + 1, 0.0, Past()
            if len(parents):
                main = int(shared[:, k].argmax())
                age = earlier[main].age_minutes + (minutes or 0.0)
                if int(shared[main].argmax()) == k:
                    track = earlier[main].track
                # When cells merge or split, the middle jumps, which is no motion.
                if len(parents) == 1 and np.count_nonzero(shared[main]) == 1:
                    past = pasts[main].aged(minutes or 0.0)
            tracks = max(tracks, track)
            ids = tuple(earlier[p].id for p in parents)
            # Only the cell's box: a continent's grid has thousands of cells.
            box = boxes[k]
            corner = np.array([part.start for part in box], np.float64)
            inside = labels[box] == k + 1
            way = None if motion is None else (motion[0][:, *box][:, inside], motion[1])
            rates = field[box][inside].astype(np.float64)
            cell, past = describe(
                len(cells) + k + 1, track, time, rates, inside, corner, way, age, ids, past
            )
            now.append(cell)
            passed.append(past)
        cells += now
        before, earlier, pasts = labels, now, passed
        if progress is not None:
            progress(done, rain["time"].size)
    return cells


def _frames(
    rain: xr.Dataset, spacing_km: float
) -> Iterator[tuple[np.datetime64, float | None, Float, tuple[Float, float] | None]]:
    """Yield time, minutes since the last frame (None after a gap), rain, motion and its minutes."""
    along = "lead_time" if "lead_time" in rain["rain_rate"].dims else "time"
    times = rain["time"].values.astype("datetime64[ns]")
    after = [float(m) for m in (times - times[0]) / np.timedelta64(1, "m")]

    def read(position: int) -> Float:
        return rain["rain_rate"].isel({along: position}).values.astype(np.float32)

    first = 0
    for k, time in enumerate(times):
        step = after[k] - after[k - 1] if k else np.inf
        if step > BRIDGE:
            first = k
        # The first frame after a gap takes its motion from the next one.
        start = k - 1 if k > first else k
        motion = None
        if start + 1 < len(times) and (length := after[start + 1] - after[start]) <= BRIDGE:
            motion = motion_between(read, after, start, first, spacing_km), length
        yield time, step if k > first else None, read(k), motion


def _shared(
    before: Labels, labels: Labels, motion: tuple[Float, float], rain: Float, shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Return the echo that each earlier cell, moved, shares with each current cell; 0 if little.

    Weights by echo, the radar's measure of rain, let a storm's core decide, not its fringes.
    """
    from scipy.ndimage import map_coordinates

    moved = map_coordinates(before, np.indices(labels.shape) - motion[0], order=0, cval=0)
    pair = moved.ravel().astype(np.int64) * (shape[1] + 1) + labels.ravel()
    size = shape[0] + 1, shape[1] + 1
    echo = np.nan_to_num(rain.ravel()) ** np.float32(1.6) + np.float32(1e-3)
    count, of_echo = (
        np.bincount(pair, weights, size[0] * size[1]).reshape(size) for weights in (None, echo)
    )
    smaller = np.minimum(count.sum(1)[1:, None], count.sum(0)[None, 1:])
    shared = count[1:, 1:]
    return np.where(shared >= np.maximum(OVERLAP * smaller, 1), of_echo[1:, 1:], 0)


class _Describer:
    """Makes the cells of a grid from the pixels that they cover."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.to_degrees = pyproj.Transformer.from_crs(grid.projection, "EPSG:4326", always_xy=True)
        self.ellipsoid = pyproj.Geod(ellps="WGS84")

    def _degrees(
        self, row: NDArray[np.float64], column: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        x, y = self.grid.x0 + self.grid.dx * column, self.grid.y0 + self.grid.dy * row
        return np.column_stack(self.to_degrees.transform(x, y))

    def __call__(
        self,
        number: int, track: int, time: np.datetime64, rates: NDArray[np.float64],
        inside: NDArray[np.bool_], corner: NDArray[np.float64],
        motion: tuple[Float, float] | None, age: float, parents: tuple[int, ...], past: Past,
    ) -> tuple[Cell, Past]:  # fmt: skip
        grid = self.grid
        at = np.argwhere(inside) + corner
        # At the edge of a missing part, a cell of smoothed rain may have no rain in it.
        row, column = np.average(at, axis=0, weights=rates if rates.sum() > 0 else None)
        speed = direction = None
        volume = float(rates.sum()) * grid.dx * grid.dy / 1000
        past = past.with_now(row, column, volume)
        way = np.zeros(2)
        if motion is not None:
            field = motion[0].mean(1, dtype=np.float64)
            way = motion[1] * past.motion(field / motion[1])
        points = self._degrees(
            np.array([row - way[0] / 2, row, row + way[0] / 2]),
            np.array([column - way[1] / 2, column, column + way[1] / 2]),
        )
        if motion is not None:
            azimuth, _, metres = self.ellipsoid.inv(*points[0], *points[2])
            speed, direction = metres / (60 * motion[1]), azimuth % 360
        cell = Cell(
            id=number, track=track, time=f"{np.datetime_as_string(time, 's')}Z",
            longitude=float(points[1, 0]), latitude=float(points[1, 1]),
            x_km=float(grid.x0 + grid.dx * column) / 1000,
            y_km=float(grid.y0 + grid.dy * row) / 1000,
            area_km2=len(rates) * grid.dx * grid.dy / 1e6,
            mean_mm_h=float(rates.mean()), max_mm_h=float(rates.max()),
            volume_m3_h=volume, trend_per_h=past.trend(),
            speed_m_s=speed, direction_deg=direction, age_minutes=age, parents=parents,
            outline=tuple(self._degrees(*(ring + corner).T) for ring in rings(inside)),
        )  # fmt: skip
        return cell, past
