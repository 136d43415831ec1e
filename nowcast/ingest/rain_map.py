"""The task of an ingest: one scan's files in, one map of rain out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.ingest.gridding import Geometry, gate_weights
from nowcast.ingest.scan import Scan
from nowcast.ingest.settings import IngestSettings
from nowcast.radar import composite, reader, volume
from nowcast.radar.header import Format, Header
from nowcast.radar.sweep import Sweep
from nowcast.rain.grid import Grid


@dataclass(frozen=True)
class Failure:
    """Files that could not be read, and why: a value, so that one bad file stops no other task."""

    name: str
    reason: str


def try_header(path: Path) -> Header | Failure:
    """Return the header of a file, or why there is none."""
    try:
        return reader.read_header(path)
    except DataError as error:
        return _failure(str(path), error)


def try_headers(paths: list[Path]) -> list[Header | Failure]:
    """Return the headers of some files: a task."""
    return [try_header(path) for path in paths]


def try_scan(scan: Scan, grid: Grid, settings: IngestSettings) -> NDArray[np.float32] | Failure:
    """Return the rain of a scan on the grid, or why there is none: a task."""
    try:
        return map_scan(scan, grid, settings)
    except DataError as error:
        return _failure(scan.name, error)


def map_scan(scan: Scan, grid: Grid, settings: IngestSettings) -> NDArray[np.float32]:
    """Return the rain rate of a scan, (ny, nx) float32 in mm h-1; 0 is dry and NaN is missing.

    Raises
    ------
    DataError
        When a file is damaged, has no reflectivity, or is of another place than the grid.
    """
    if not scan.format.polar:
        header = scan.headers[0]
        if header.grid is None or not grid.matches(header.grid):
            raise DataError(f"{header.path}: expected the grid of {grid}, found {header.grid}")
        return composite.read_rain(header, scan.index, settings.relation)
    sweeps = volume.read_sweeps(
        [Path(header.path) for header in scan.headers],
        scan.format,
        cuts=settings.sweeps,
        moment=settings.moment,
    )
    return combine([_map_sweep(sweep, grid, settings, scan) for sweep in sweeps], settings.combine)


def combine(maps: list[NDArray[np.float32]], how: str) -> NDArray[np.float32]:
    """Return one map of those of several elevations, lowest first.

    ``"lowest"`` takes for each cell the lowest elevation that is not missing there, ``"max"`` the
    strongest rain of all.
    """
    result = maps[0]
    for other in maps[1:]:
        result = (
            np.fmax(result, other) if how == "max" else np.where(np.isnan(result), other, result)
        )
    return result


def _map_sweep(
    sweep: Sweep, grid: Grid, settings: IngestSettings, scan: Scan
) -> NDArray[np.float32]:
    site = settings.site or sweep.site
    if site is None:
        raise DataError(missing_site(scan.name))
    if settings.rhohv is not None:
        sweep = sweep.without_clutter(settings.rhohv)
    assert sweep.dbz is not None
    dbz = sweep.dbz
    if settings.fill == "no echo" and scan.format is Format.CFRADIAL:
        dbz = np.where(np.isnan(dbz), np.float32(-np.inf), dbz)
    rain = settings.relation.rain_rate(dbz)
    geometry = Geometry.of(site, sweep.elevation, sweep.azimuth, sweep.range)
    return gate_weights(geometry, grid).apply(rain)


def missing_site(name: str) -> str:
    """Return the sentence for a radar file that does not say where the radar stands."""
    return (
        f"{name}: the file does not say where the radar stands (latitude and longitude are 0); "
        "give it with --site LAT,LON[,ALT]"
    )


def _failure(name: str, error: DataError) -> Failure:
    reason = str(error)
    # The reason stands beside the name, which need not be said twice.
    return Failure(name, reason.removeprefix(f"{name}: "))
