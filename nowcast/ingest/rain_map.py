"""The task of an ingest: one scan's files in, one map of rain out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.ingest.gridding import LEAST_QUALITY, Coverage, beam_quality, gate_weights
from nowcast.ingest.scan import Scan
from nowcast.ingest.settings import IngestSettings
from nowcast.quality.bright_band import freezing_level
from nowcast.quality.clean import STEPS, Cleaned, clean
from nowcast.quality.climate import alike, open_climate
from nowcast.radar import isolated, reader
from nowcast.radar.guard import ReaderError, guarded
from nowcast.radar.header import Format, Header, Site, compare_times
from nowcast.radar.polar.sweep import Sweep
from nowcast.rain.grid import Grid


@dataclass(frozen=True)
class Failure:
    """Files that could not be read, and why; a value, so that bad files stop no other task."""

    name: str  #: The file or files.
    reason: str  #: A sentence.
    ours: bool = False  #: It is a mistake of this program, not the file's fault.
    files: tuple[str, ...] = ()  #: All paths; by default the name is one file's.

    @classmethod
    def of(cls, name: str, error: Exception, files: Sequence[str] = ()) -> Failure:
        """Return the failure of an exception of the guard."""
        # The reason is shown next to the name, which need not be repeated.
        reason = str(error).removeprefix(f"{name}: ")
        return cls(name, reason, isinstance(error, ReaderError), tuple(files))


@dataclass(frozen=True)
class RainMap:
    """The rain of a scan."""

    #: (ny, nx): rain rate in mm h-1; 0 is dry and NaN is missing.
    rain: NDArray[np.float32] = field(repr=False)
    coverage: Coverage  #: How many cells of what the scan's radars reach are missing, dry and wet.
    #: Files of the scan that could not be read, and without which it was made.
    lost: tuple[Failure, ...] = ()
    repeated: tuple[str, ...] = ()  #: Files whose sweeps another file of the scan has too.
    elevation: float | None = None  #: Of the lowest sweep, degrees.
    #: Gates that each step of the cleaning took out; ``"echo"`` is how many there were.
    removed: Mapping[str, int] = field(default_factory=dict)
    #: Of a mosaic, how well the radar sees each cell, above 0 to 1, (ny, nx); NaN where it does
    #: not reach.
    quality: NDArray[np.float32] | None = field(default=None, repr=False)
    #: Bits of the steps that took echo out of a cell, see `nowcast.quality.clean`, (ny, nx).
    flags: NDArray[np.uint8] | None = field(default=None, repr=False)

    def missing(self) -> RainMap:
        """Return the map of a scan without data."""
        return replace(self, rain=np.full_like(self.rain, np.nan), coverage=Coverage())


def try_header(path: Path) -> Header | Failure:
    """Return the header of a file, or why there is none."""
    try:
        with guarded(str(path)):
            return isolated.call(str(path), reader.read_header, path)
    except Exception as error:
        return Failure.of(str(path), error)


def try_headers(paths: list[Path]) -> list[Header | Failure]:
    """Return the headers of some files: a task."""
    return [try_header(path) for path in paths]


def try_scan(
    scan: Scan, grid: Grid, settings: IngestSettings, site: Site | None = None
) -> RainMap | Failure:
    """Return the rain of a scan on the grid, or why there is none: a task."""
    try:
        with guarded(scan.name, scan.format):
            return map_scan(scan, grid, settings, site)
    except Exception as error:
        return Failure.of(scan.name, error, scan.paths)


def map_scan(scan: Scan, grid: Grid, settings: IngestSettings, site: Site | None = None) -> RainMap:
    """Return the rain of a scan on a grid; composites keep their own.

    ``site`` is the radar's site from other files, for files without one. Raises DataError if a file
    is damaged, has no reflectivity, or is of another place than the grid.
    """
    if not scan.format.polar:
        header = scan.headers[0]
        if header.grid is None or not grid.matches(header.grid):
            raise DataError(
                f"{header.path}: expected the grid of {grid}, found {header.grid}; "
                "ingest files of one grid into one store"
            )
        rain = isolated.call(scan.name, reader.read_rain, header, scan.index, settings.relation)
        # Reflectivity without a dry cell can only say "no echo" by missing numbers.
        dry = bool((rain == 0).any()) or not np.isfinite(rain).any()
        if settings.fill == "no echo" or (
            settings.fill == "auto" and header.reflectivity and not dry
        ):
            rain = np.nan_to_num(rain, copy=False)
        return RainMap(rain, Coverage.of(rain))
    sweeps, lost, repeated = read_sweeps(scan, settings)
    cleaned = clean_sweeps(placed(sweeps, settings, site, scan.name), settings, scan.format)
    seen = [_corrected(one.sweep, settings.offset.get(scan.station, 0.0)) for one in cleaned]
    maps, reached = map_sweeps(seen, grid, settings, scan.name)
    rain = combine(maps, settings.combine)
    quality = None
    if settings.mosaic is not None:
        quality = _quality(cleaned, maps, grid, by_height=settings.mosaic == "quality")
        quality[~reached] = np.nan
    lowest = min(sweep.elevation for sweep in sweeps)
    removed: Counter[str] = Counter()
    for one in cleaned:
        removed.update(one.counts)
    flags = map_flags(cleaned, grid) if settings.keep_flags else None
    coverage = Coverage.of(rain, reached)
    return RainMap(rain, coverage, lost, repeated, lowest, dict(removed), quality, flags)


def clean_sweeps(
    sweeps: Sequence[Sweep], settings: IngestSettings, format: Format
) -> list[Cleaned]:
    """Return sweeps without echo that is not rain; missing and no echo are distinct."""
    weakest = -np.inf if settings.noise is None else settings.noise
    climates = [open_climate(path) for path in settings.climate]
    freezing = settings.freezing
    level = None if freezing is None else freezing_level(freezing, sweeps[0].time)
    cleaned = []
    for sweep in sweeps:
        climate = next((one for one in climates if alike(sweep, one)), None)
        rules = (settings.steps, settings.threshold, weakest, climate, settings.attenuation, level)
        cleaned.append(clean(_distinct(sweep, settings, format), *rules))
    return cleaned


def placed(
    sweeps: Sequence[Sweep], settings: IngestSettings, site: Site | None, name: str
) -> list[Sweep]:
    """Return sweeps with a site: of the settings, their own, or of another file of the radar."""
    sites = [settings.site or sweep.site or site for sweep in sweeps]
    if None in sites:
        raise DataError(missing_site(name))
    return [replace(sweep, site=where) for sweep, where in zip(sweeps, sites, strict=True)]


def map_sweeps(
    sweeps: Sequence[Sweep], grid: Grid, settings: IngestSettings, name: str
) -> tuple[list[NDArray[np.float32]], NDArray[np.bool_]]:
    """Return a map of each sweep in mm h-1, and the cells (y, x) that the radar reaches."""
    maps, reached = [], np.zeros(grid.shape, bool)
    for sweep in sweeps:
        weights = gate_weights(sweep.geometry, grid)
        assert sweep.dbz is not None
        maps.append(weights.apply(settings.relation.rain_rate(sweep.dbz)))
        reached |= weights.reached
    if not reached.any():
        raise DataError(
            f"{name}: the radar at {sweeps[0].site} reaches no cell of the grid of "
            f"{grid}; ingest it into a store of its own, or give --centre and --size that reach it"
        )
    return maps, reached


def _corrected(sweep: Sweep, offset: float) -> Sweep:
    """Return a sweep with an offset in dB added."""
    if not offset:
        return sweep
    assert sweep.dbz is not None
    return replace(sweep, dbz=sweep.dbz + np.float32(offset))


def _quality(
    cleaned: Sequence[Cleaned], maps: Sequence[NDArray[np.float32]], grid: Grid, *, by_height: bool
) -> NDArray[np.float32]:
    """Return the quality (y, x) of the lowest sweep that sees a cell.

    It is the beam's quality times the share of power that obstacles and rain let through.
    """
    result = np.full(grid.shape, np.nan, np.float32)
    for one, rain in zip(cleaned, maps, strict=True):
        geometry = one.sweep.geometry
        quality = beam_quality(geometry, grid, by_height=by_height)
        if by_height and one.lost is not None:
            share = gate_weights(geometry, grid).apply(np.float32(10) ** (-0.1 * one.lost))
            quality = np.fmax(quality * share, np.float32(LEAST_QUALITY))
        result = np.where(np.isnan(result) & ~np.isnan(rain), quality, result)
    return np.where(np.isnan(result), quality, result)


def map_flags(cleaned: Sequence[Cleaned], grid: Grid) -> NDArray[np.uint8]:
    """Return the bits (y, x) of the steps that changed any of a cell's gates, in any sweep."""
    result = np.zeros(grid.shape, np.uint8)
    for one in cleaned:
        weights = gate_weights(one.sweep.geometry, grid)
        for bit in (1 << place for place in range(len(STEPS))):
            if (one.flags & bit).any():
                result[weights.apply((one.flags & bit).astype(np.float32)) > 0] |= bit
    return result


def read_sweeps(
    scan: Scan, settings: IngestSettings
) -> tuple[list[Sweep], tuple[Failure, ...], tuple[str, ...]]:
    """Return the usable sweeps of a polar scan, files that could not be read, and repeated ones.

    A damaged file does not affect the others of its scan, unless none has reflectivity then.
    """
    paths = [Path(header.path) for header in scan.headers]
    sweeps: list[Sweep] = []
    errors: list[Exception] = []
    lost: list[Failure] = []
    repeated: list[str] = []
    for part in reader.parts(paths, scan.format):
        name = str(part[0])
        try:
            with guarded(name, scan.format):
                read = isolated.call(
                    name, reader.read_part, part, scan.format, settings.sweeps, settings.moment
                )
                for sweep in read:
                    compare_times("the header's time", scan.scanned, sweep.time)
            if any(_repeats(sweep, known) for sweep in read for known in sweeps):
                repeated.append(name)
            else:
                sweeps += read
        except (DataError, ReaderError) as error:
            errors.append(error)
            lost.append(Failure.of(name, error, [str(path) for path in part]))
    if errors and not any(sweep.dbz is not None for sweep in sweeps):
        raise errors[0]
    usable = reader.usable(sweeps, paths, settings.sweeps, settings.moment)
    return usable, tuple(lost), tuple(repeated)


def _repeats(sweep: Sweep, known: Sweep) -> bool:
    """Return whether two files both have the reflectivity of one turn, not separate moments."""
    return sweep.dbz is not None and known.dbz is not None and sweep.same_turn(known)


def combine(maps: list[NDArray[np.float32]], how: str) -> NDArray[np.float32]:
    """Return one map from the maps of several elevations, lowest first.

    ``"lowest"`` takes a cell's lowest elevation that is not missing, ``"max"`` the strongest rain.
    """
    result = maps[0]
    for other in maps[1:]:
        result = (
            np.fmax(result, other) if how == "max" else np.where(np.isnan(result), other, result)
        )
    return result


def _distinct(sweep: Sweep, settings: IngestSettings, format: Format) -> Sweep:
    """Return the sweep with gates without a number as no echo, if the format means that."""
    assert sweep.dbz is not None
    dbz = sweep.dbz
    silent = settings.fill == "no echo" or (settings.fill == "auto" and not np.isneginf(dbz).any())
    if format.single_code and silent:
        return replace(sweep, dbz=np.where(np.isnan(dbz), np.float32(-np.inf), dbz))
    return sweep


def missing_site(name: str) -> str:
    """Return the sentence for a radar file that does not say where the radar stands."""
    return (
        f"{name}: the file does not say where the radar stands (latitude and longitude are 0); "
        "give it with --site LAT,LON[,ALT]"
    )
