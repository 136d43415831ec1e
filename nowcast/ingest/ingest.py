"""Ingest: radar files in, a rain store out; one Dask task a scan, written in the order of time."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.cluster.bounded import Died, connected, in_order
from daskdl.errors import DataError, SettingsError
from nowcast.ingest import mosaic
from nowcast.ingest.rain_map import Failure, RainMap, try_headers, try_scan
from nowcast.ingest.remote import (
    Access,
    ReadList,
    RemoteFile,
    batches,
    copies,
    is_remote,
    listed,
    whole_bytes,
)
from nowcast.ingest.report import GRID, IngestReport
from nowcast.ingest.scan import GRACE, Scan, group_scans
from nowcast.ingest.settings import IngestSettings
from nowcast.ingest.sources import (
    Sources,
    find_files,
    of_one_radar,
    store_attributes,
    target_grid,
    typical,
)
from nowcast.mosaic import Calibration
from nowcast.quality.bright_band import freezing_levels
from nowcast.quality.clean import STEPS
from nowcast.quality.climate import open_climate
from nowcast.radar.header import ENDINGS, NAMELESS, Header, Site
from nowcast.radar.reader import require_readers
from nowcast.rain import writer
from nowcast.rain.grid import Grid
from nowcast.rain.store import open_rain

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger("nowcast.ingest")

Show = Callable[[int, int], None]
#: Attributes of a store's rain and of the store.
Attributes = tuple[dict[str, Any], dict[str, Any]]

# Degrees by which the lowest sweep may be above the earlier scans' lowest sweep.
JUMP = 2.0
# Attributes of the rain that are compared also where a run does not set them.
ALWAYS_COMPARED = ("mosaic", "calibration_offset")
# Headers are read by tasks of so many files: each costs milliseconds, a task costs one too.
FILES_A_HEADER_TASK = 32


def ingest(
    sources: Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    settings: IngestSettings | None = None,
    *,
    client: Client | None = None,
    progress: Show | None = None,
    called: str | None = None,
    access: Access | None = None,
    cache: str | os.PathLike[str] | None = None,
    **overrides: Any,
) -> IngestReport:
    """Put the rain of radar scans into a zarr store, made or appended to.

    Dask reads the scans, a few at a time; this process writes them in the order of time. After an
    interruption the store has the scans committed so far and can be read; the same call continues
    with the rest. Scans may come late; readers that have the store open still see the frames that
    they opened.

    Parameters
    ----------
    sources : iterable of path
        Files, trees of folders and patterns, of one radar or one composite, or of several radars
        for a mosaic; addresses that fsspec knows, ``s3://...`` or ``https://.../``; and archives
        (zip, tar).
    out : path
        The rain store; :func:`nowcast.rain.store.open_rain` describes it.
    settings : IngestSettings, optional
        Grid, sweeps and Z-R relation.
    client : distributed.Client, optional
        Cluster to read on; its workers must see the files at the same paths. Without one, many
        bytes are read by processes of this machine, few bytes by this process.
    progress : callable of (done, total), optional
        Called after each scan.
    called : str, optional
        Name of the store in messages; by default its path.
    access : Access, optional
        Options of remote stores, and the wanted times, by the files' names.
    cache : path, optional
        Folder, seen by all workers, that keeps copies of remote files. By default some hundred
        copies at a time are in a hidden folder next to the store until they are read.
    **overrides
        Single settings, which replace values in ``settings``.

    Returns
    -------
    IngestReport
        Report with the files that could not be read; the others were ingested.

    Raises
    ------
    DataError
        When no source can be read, when sources are of several radars, or when the store has
        another grid or other settings. Then nothing is written.
    """
    settings = IngestSettings.of(**((dict(settings) if settings else {}) | overrides))
    path = Path(out)
    if path.suffix in {".nc", ".nc4"}:
        raise SettingsError(
            f"{path}: expected the name of a zarr store, found one of a netCDF file; "
            "end it in .zarr"
        )
    require_readers()
    for climate in settings.climate:
        open_climate(climate)
    if isinstance(settings.freezing, Path):
        freezing_levels(settings.freezing)
    access = access or Access()
    sources = list(sources)
    files = find_files([source for source in sources if not is_remote(source)])
    remote = listed([source for source in sources if is_remote(source)], access)
    report = IngestReport(store=called or str(path))
    size = files.size() + whole_bytes(remote)
    with connected(client, size) as cluster, writer.locked(path):
        run = _Run(cluster, path, settings, report, progress)
        if len(files):
            run.ingest(files)
        folder = Path(cache) if cache else path.with_name(f".{path.name}.copies")
        run.ingest_remote(remote, folder.absolute(), access, keep=bool(cache))
    if not (report.written or report.anew or report.existing or report.repeated):
        raise report.nothing_read()
    report.warn_of_missing()
    return report


@dataclass(frozen=True)
class _Run:
    """An ingest into the store at ``path``, which is locked."""

    cluster: Client | None
    path: Path
    settings: IngestSettings
    report: IngestReport
    progress: Show | None

    def ingest_remote(
        self, files: Sequence[RemoteFile], folder: Path, access: Access, *, keep: bool
    ) -> None:
        """Fetch and ingest remote files, batch by batch, except those in the store."""
        read = ReadList(self.path)
        unread = read.without_read(files)
        new = {file.url for file in unread}
        if self.settings.mosaic is not None:
            # Scans of the other radars, fetched once more: a late one makes its frames anew with
            # them.
            near = mosaic.near_in_time(new, [file.url for file in files if file.url not in new])
            unread = [file for file in files if file.url in new.union(near)]
        self.report.existing += len(files) - len(unread)
        done = 0
        early = GRACE if self.settings.mosaic is None else mosaic.step_of(self.settings) // 2
        for batch in batches(unread, early):
            with copies(self.cluster, batch, folder, access, keep=keep) as (local, failures):
                for failure in failures:
                    self.report.fail(failure)
                self.report.addresses = {str(copy): file.url for copy, file in local.items()}

                def show(scan: int, scans: int, done: int = done, size: int = len(batch)) -> None:
                    if self.progress is not None:
                        self.progress(done + size * scan // scans, len(unread))

                sources = Sources([c for c, f in local.items() if f.named])
                sources.found += [c for c, f in local.items() if not f.named]
                replace(self, progress=show).ingest(sources)
                unread_here = self.report.unread
                read.add([f for f in local.values() if f.url in new and f.url not in unread_here])
            done += len(batch)

    def ingest(self, files: Sources) -> None:
        """Ingest files of this machine."""
        headers, report, settings = self._read_headers(files), self.report, self.settings
        if settings.mosaic is not None:
            self._ingest_mosaic(headers)
            return
        headers = of_one_radar(headers, report)
        scans, repeated = group_scans(headers, settings.step)
        self._tell_repeated(repeated)
        if not scans:
            return
        first = typical([header for scan in scans for header in scan.headers])
        if not first.format.polar:
            report.area = GRID
        attributes = store_attributes(first, settings)
        grid, times = self._agree(target_grid(first, settings), attributes)
        report.existing += sum(scan.time in times for scan in scans)
        scans = [scan for scan in scans if scan.time not in times]

        def frames() -> Iterator[writer.Frame]:
            for scan, rain_map in self._read_scans(scans, grid, {first.station: first.site}):
                if rain_map is not None:
                    report.written += 1
                    report.coverage += rain_map.coverage
                    yield writer.Frame(scan.time, rain_map.rain, scan.scanned, flags=rain_map.flags)

        self._write(frames(), grid, attributes)

    def _ingest_mosaic(self, headers: list[Header]) -> None:
        """Ingest the scans of several radars into one map."""
        report, settings = self.report, self.settings
        if settings.keep_flags:
            raise SettingsError(
                "ingest, keep_flags: expected scans of one radar, found a mosaic; leave one of "
                "both out"
            )
        radars = mosaic.radars_of(headers, report)
        frames, repeated = mosaic.plan_frames(radars, settings)
        self._tell_repeated(repeated)
        if not frames:
            return
        report.area = "the radars' range"
        usual = {name: typical(series) for name, series in radars.items()}
        sites = {name: header.site for name, header in usual.items()}
        attributes = mosaic.attributes_of(list(usual.values()), settings)
        around = mosaic.grid_of(list(sites.values()), settings, self.path)
        grid, _ = self._agree(around, attributes)
        made = mosaic.radar_counts(self.path)
        planned = len(frames)
        # A radar that came late, or a scan that could not be read then, makes a frame anew.
        frames = [frame for frame in frames if len(frame.parts) > made.get(frame.time, 0)]
        report.existing += planned - len(frames)
        report.radars = dict.fromkeys(radars, 0) | report.radars
        if report.calibration is None:
            report.calibration = Calibration(settings.relation.b)
        maps = self._read_scans(mosaic.in_reading_order(frames), grid, sites)
        merged = mosaic.merged_frames(frames, maps, grid, settings, report, made)
        self._write(merged, grid, attributes)

    def _tell_repeated(self, scans: Sequence[Scan]) -> None:
        self.report.repeated += len(scans)
        for scan in scans:
            log.warning("%s: skipped: another scan has its time, %s", scan.name, scan.time)

    def _write(self, frames: Iterator[writer.Frame], grid: Grid, attributes: Attributes) -> None:
        """Add frames to the store; the first one creates it if necessary."""
        if not self.path.exists():
            first = next(frames, None)
            if first is None:
                return
            of_rain, of_store = attributes
            writer.create(
                self.path, grid, first, attributes=of_rain, global_attributes=of_store, flags=STEPS
            )
        writer.append(self.path, frames)

    def _agree(self, grid: Grid, attributes: Attributes) -> tuple[Grid, set[np.datetime64]]:
        """Return grid and times of the store, if there is one, checked against this run's."""
        path = self.path
        if not path.exists():
            return grid, set()
        of_rain, of_store = attributes
        with open_rain(path) as dataset:
            existing = Grid.from_dataset(dataset, where=str(path))
            if not existing.matches(grid):
                raise DataError(
                    f"{path}: the store has a grid of {existing}, these sources give {grid}; "
                    "use the same grid or another store"
                )
            for name in [*of_rain, *(name for name in ALWAYS_COMPARED if name not in of_rain)]:
                # Stores of before there was more to clean with than the correlation do not say so.
                unsaid = "none" if name == "cleaning" else None
                before, value = dataset["rain_rate"].attrs.get(name, unsaid), of_rain.get(name)
                if before != value:
                    raise DataError(
                        f"{path}: the store was made with {name} {before!r}, this run has "
                        f"{value!r}; use the same settings or another store"
                    )
            before = dataset.attrs.get("station")
            # Another day may have other radars of a mosaic, whose grid says where they stand.
            nameless = str(before).lower() in NAMELESS  # of before places named radars
            if not nameless and "mosaic" not in of_rain and before != of_store["station"]:
                raise DataError(
                    f"{path}: the store holds rain of {before!r}, these sources are of "
                    f"{of_store['station']!r}; use another store"
                )
            return existing, set(dataset["time"].values.astype("datetime64[s]"))

    def _read_headers(self, files: Sources) -> list[Header]:
        paths = [*files.named, *files.found]
        groups = [
            paths[i : i + FILES_A_HEADER_TASK] for i in range(0, len(paths), FILES_A_HEADER_TASK)
        ]
        headers: list[Header] = []
        named = set(files.named)
        calls = [(group,) for group in groups]
        for (group,), results in in_order(self.cluster, try_headers, calls, "header"):
            if isinstance(results, Died):
                results = [Failure(str(path), results.reason) for path in group]
            for path, result in zip(group, results, strict=True):
                if isinstance(result, Header):
                    headers.append(result)
                elif path in named or path.suffix.lower() in ENDINGS:
                    self.report.fail(result)
                else:
                    self.report.ignored += 1
        return headers

    def _read_scans(
        self, scans: Sequence[Scan], grid: Grid, sites: Mapping[str, Site | None]
    ) -> Iterator[tuple[Scan, RainMap | None]]:
        """Yield scans with their maps; None, and a report, for those that could not be read."""
        lowest: dict[str, float] = {}
        arguments = [(scan, grid, self.settings, sites[scan.station]) for scan in scans]
        results = in_order(self.cluster, try_scan, arguments, "scan")
        for done, ((scan, *_), result) in enumerate(results, start=1):
            if isinstance(result, Died):
                result = Failure(scan.name, result.reason, files=tuple(scan.paths))
            if isinstance(result, Failure):
                self.report.fail(result)
                yield scan, None
            else:
                if result.elevation is not None:
                    before = lowest.get(scan.station, np.inf)
                    if result.elevation > before + JUMP:
                        log.warning(
                            "%s: the lowest sweep is at %g degrees, in scans before it is at %g; "
                            "the frame is missing", scan.name, result.elevation, before,
                        )  # fmt: skip
                        result = result.missing()
                    lowest[scan.station] = min(before, result.elevation or before)
                self.report.count_removed(result.removed)
                for lost in result.lost:
                    self.report.fail(lost)
                for name in result.repeated:
                    log.warning("%s: skipped: another file has its sweeps, %s", name, scan.time)
                self.report.repeated += len(result.repeated)
                yield scan, result
            if self.progress is not None:
                self.progress(done, len(scans))
