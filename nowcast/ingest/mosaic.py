"""Frames of a mosaic: the scans of several radars for each frame, read in turn and merged."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import DataError
from nowcast.ingest.gridding import Coverage
from nowcast.ingest.name_times import name_time
from nowcast.ingest.rain_map import Failure, RainMap
from nowcast.ingest.report import IngestReport
from nowcast.ingest.scan import Scan, group_scans, nearest
from nowcast.ingest.settings import IngestSettings
from nowcast.ingest.sources import store_attributes
from nowcast.mosaic import Float, View, merge, motion_between, moved
from nowcast.radar.header import Header, Site
from nowcast.rain import writer
from nowcast.rain.grid import Grid
from nowcast.rain.store import open_rain

log = logging.getLogger("nowcast.ingest")

STEP = np.timedelta64(300, "s")
SECOND = np.timedelta64(1, "s")
# Scans that began so near to a frame's time, in seconds, are not moved.
SAME_TIME = 15.0
# Scans further apart than this do not tell a motion.
LONGEST = np.timedelta64(20, "m")
# Of each side of a grid on which motion is looked for.
FEWEST_CELLS = 8
# Files so near to a new one make its frames anew.
NEAR = np.timedelta64(15, "m")
# More radars than any mosaic has.
MOST_RADARS = 1 << 30


@dataclass(frozen=True)
class Part:
    """One radar's part in a frame: the scan nearest in time, and the ``other`` for its motion.

    ``other`` is the scan before, for the first scan the one after; None if no motion is needed.
    """

    scan: Scan
    other: Scan | None = None

    @property
    def scans(self) -> list[Scan]:
        """The scans to read."""
        return [self.scan] if self.other is None else [self.scan, self.other]


@dataclass(frozen=True)
class MosaicFrame:
    """The time and the parts of a frame."""

    time: np.datetime64
    parts: tuple[Part, ...]


def radars_of(headers: Sequence[Header], report: IngestReport) -> dict[str, list[Header]]:
    """Return the headers of each radar, by its name; composites are counted as failed."""
    radars: dict[str, list[Header]] = {}
    for header in headers:
        if header.format.polar:
            radars.setdefault(header.station, []).append(header)
        else:
            reason = f"expected a radar's volume for a mosaic, found a composite ({header.format})"
            report.fail(Failure(header.path, reason))
    return dict(sorted(radars.items()))


def attributes_of(
    headers: Sequence[Header], settings: IngestSettings
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes of a mosaic's rain and of its store; one header of each radar."""
    of_rain, of_store = store_attributes(headers[0], settings)
    names = ", ".join(header.station for header in headers)
    formats = ", ".join(sorted({header.format.value for header in headers}))
    return of_rain, of_store | {
        "title": f"Radar rain rate, mosaic of {names}",
        "source": f"weather radars, {formats}, stations {names}",
        "station": f"mosaic of {names}",
    }


def grid_of(sites: Sequence[Site | None], settings: IngestSettings, path: Path) -> Grid:
    """Return the grid around the middle of the radars; a store at ``path`` keeps its own middle.

    Raises DataError when no radar says where it stands, or the grid is too small for motion.
    """
    if min(settings.size) < FEWEST_CELLS:
        raise DataError(
            f"mosaic: expected at least {FEWEST_CELLS} cells along each side of the grid, found "
            f"{settings.size}; raise --size"
        )
    if path.exists() and settings.centre is None:
        with open_rain(path) as dataset:
            grid = Grid.from_dataset(dataset, where=str(path))
        # With radars that come and go their middle moves, and the store's does not.
        if grid.shape == settings.size and np.allclose([grid.dx, grid.dy], settings.spacing):
            return grid
    places = [(site.latitude, site.longitude) for site in sites if site is not None]
    if not places:
        raise DataError(
            "sources: expected radars that say where they stand, found none; ingest each with "
            "--site into a store of its own"
        )
    # Angles as directions, since there is no mean of 179 and -179 degrees.
    around = np.exp(1j * np.radians([longitude for _, longitude in places])).mean()
    latitude = float(np.mean([latitude for latitude, _ in places]))
    return Grid.around(
        latitude, float(np.degrees(np.angle(around))), size=settings.size,
        spacing=settings.spacing, centre=settings.centre,
    )  # fmt: skip


def near_in_time(new: Collection[str], taken: Collection[str]) -> list[str]:
    """Return the known files whose names' times are near a new file's.

    Their radars share the new file's frames, and give the motion.

    Examples
    --------
    >>> near_in_time(["b/s_202006010007.h5"], ["a/s_202006010005.h5", "a/s_202006010105.h5"])
    ['a/s_202006010005.h5']
    """
    times = {name: name_time(name.rpartition("/")[2]) for name in (*new, *taken)}
    around = sorted(time for name in new if (time := times[name]) is not None)

    def near(time: np.datetime64 | None) -> bool:
        place = 0 if time is None else bisect_left(around, time - NEAR)
        return time is not None and place < len(around) and bool(around[place] <= time + NEAR)

    return [name for name in taken if near(times[name])]


def radar_counts(path: Path) -> dict[np.datetime64, int]:
    """Return the number of radars of each frame of a store, if there is one, by time.

    For stores without this number it is so large that no frame is made anew.
    """
    if not path.exists():
        return {}
    with open_rain(path) as dataset:
        times = dataset["time"].values.astype("datetime64[s]")
        counts = dataset.get("radar_count")
        radars = np.full(times.size, MOST_RADARS) if counts is None else counts.values
    return dict(zip(times, radars.tolist(), strict=True))


def step_of(settings: IngestSettings) -> np.timedelta64:
    """Return the time between a mosaic's frames."""
    return STEP if settings.step is None else settings.step.astype("timedelta64[s]")


def plan_frames(
    radars: dict[str, list[Header]], settings: IngestSettings
) -> tuple[list[MosaicFrame], list[Scan]]:
    """Return the frames in order of time, and the scans that another one of their time replaces."""
    step = step_of(settings)
    series: dict[str, list[Scan]] = {}
    repeated: list[Scan] = []
    for name, headers in radars.items():
        scans, seconds = group_scans(headers)
        series[name] = sorted(scans, key=lambda scan: scan.scanned)
        repeated += seconds
    every = [scan for scans in series.values() for scan in scans]
    times = sorted({nearest(scan.scanned, step) for scan in every})
    frames = []
    for time in times:
        parts = [_part(scans, time, settings.within) for scans in series.values()]
        if chosen := tuple(part for part in parts if part is not None):
            frames.append(MosaicFrame(time, chosen))
    return frames, repeated


def _part(scans: list[Scan], time: np.datetime64, within: np.timedelta64) -> Part | None:
    """Return the part of a radar; its scans are in the order of their starts."""
    began = [scan.scanned for scan in scans]
    after = bisect_left(began, time)
    near = min(
        (index for index in (after - 1, after) if 0 <= index < len(scans)),
        key=lambda index: abs(began[index] - time),
    )
    if abs(began[near] - time) > within:
        return None
    if abs(began[near] - time) <= SAME_TIME * SECOND:
        return Part(scans[near])
    others = [
        scans[index] for index in (near - 1, near + 1)
        if 0 <= index < len(scans) and abs(began[index] - began[near]) <= LONGEST
    ]  # fmt: skip
    return Part(scans[near], others[0] if others else None)


def in_reading_order(frames: Sequence[MosaicFrame]) -> list[Scan]:
    """Return each scan of the frames once, in the order of use."""
    return list({scan: None for frame in frames for part in frame.parts for scan in part.scans})


def merged_frames(
    frames: Sequence[MosaicFrame],
    maps: Iterator[tuple[Scan, RainMap | None]],
    grid: Grid,
    settings: IngestSettings,
    report: IngestReport,
    made: Mapping[np.datetime64, int],
) -> Iterator[writer.Frame]:
    """Yield the frames, each as soon as its scans were read.

    ``maps`` are in the order of `in_reading_order`, None for a scan that could not be read.
    ``report`` gets the radars of each frame and the differences of their calibrations. ``made`` is
    the number of radars of the store's frames; frames with no more radars are left out.
    """
    uses = Counter(scan for frame in frames for part in frame.parts for scan in part.scans)
    known: dict[Scan, RainMap | None] = {}
    for frame in frames:
        needed = [scan for part in frame.parts for scan in part.scans]
        while not all(scan in known for scan in needed):
            scan, rain_map = next(maps)
            known[scan] = rain_map
        views = _views(frame, known, grid)
        uses.subtract(needed)
        for scan in needed:
            if not uses[scan]:
                known.pop(scan, None)
        if len(views) <= made.get(frame.time, 0):
            report.existing += frame.time in made
            continue
        assert settings.mosaic is not None
        assert report.calibration is not None
        report.calibration.add(views)
        merged = merge(list(views.values()), settings.mosaic)
        reached = np.logical_or.reduce([np.isfinite(view.quality) for view in views.values()])
        report.written += frame.time not in made
        report.anew += frame.time in made
        report.coverage += Coverage.of(merged.rain, reached)
        for name in views:
            report.radars[name] = report.radars.get(name, 0) + 1
        first = min(part.scan.scanned for part in frame.parts if part.scan.station in views)
        yield writer.Frame(frame.time, merged.rain, first, merged.quality, radars=len(views))


def _views(frame: MosaicFrame, known: dict[Scan, RainMap | None], grid: Grid) -> dict[str, View]:
    """Return the radars' maps moved to the frame's time, by their names."""
    views: dict[str, View] = {}
    late: dict[str, float] = {}
    motions: list[Float] = []
    for part in frame.parts:
        rain_map = known[part.scan]
        if rain_map is None or not np.isfinite(rain_map.rain).any():
            continue
        assert rain_map.quality is not None
        name = part.scan.station
        views[name] = View(rain_map.rain, rain_map.quality)
        seconds = float((frame.time - part.scan.scanned) / SECOND)
        if abs(seconds) <= SAME_TIME:
            continue
        late[name] = seconds
        other = None if part.other is None else known[part.other]
        if part.other is not None and other is not None:
            apart = float((part.scan.scanned - part.other.scanned) / SECOND)
            pair = (other.rain, rain_map.rain) if apart > 0 else (rain_map.rain, other.rain)
            motion = motion_between(*pair, abs(apart), grid.dx)
            views[name], late[name] = moved(views[name], motion, seconds), 0.0
            motions.append(motion)
    for name, seconds in late.items():
        # A radar with one scan moves as another one sees the rain move, or stays.
        if seconds and motions:
            views[name] = moved(views[name], motions[0], seconds)
    return views
