"""The climate of a radar's echoes, learnt from its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from daskdl.cluster.bounded import Died, connected, in_order
from nowcast.ingest.rain_map import Failure, clean_sweeps, read_sweeps, try_headers
from nowcast.ingest.report import IngestReport
from nowcast.ingest.scan import Scan, group_scans
from nowcast.ingest.settings import IngestSettings
from nowcast.ingest.sources import find_files, of_one_radar
from nowcast.quality.climate import Climate, Tally
from nowcast.radar.guard import guarded
from nowcast.radar.header import Header
from nowcast.radar.polar.sweep import Sweep

if TYPE_CHECKING:
    from distributed import Client

#: Nothing that would hide ground is taken out before it is counted.
COUNTED = IngestSettings.of(clean="spikes,speckle")


def learn(
    sources: Iterable[str | os.PathLike[str]],
    client: Client | None = None,
    progress: Callable[[int, int], None] | None = None,
    terrain: Path | None = None,
) -> Climate:
    """Learn ground and obstacles from the lowest sweeps of a radar's files.

    ``sources`` are files, folders and patterns of polar scans of one radar, read on the client's
    cluster. ``terrain`` is a model (GeoTIFF, netCDF, zarr) whose blockage is added. Raises
    DataError if there are no polar scans, scans of several radars, or, without terrain, too few.
    """
    files = find_files(sources)
    report = IngestReport(store="climate")
    read = try_headers([*files.named, *files.found])
    headers = [one for one in read if isinstance(one, Header) and one.format.polar]
    scans, _ = group_scans(of_one_radar(headers, report))
    if not scans:
        raise report.nothing_read()
    tally = Tally()
    with connected(client, files.size()) as cluster:
        calls = [(scan,) for scan in scans]
        for done, ((scan,), result) in enumerate(in_order(cluster, _lowest, calls, "scan"), 1):
            if isinstance(result, Died):
                result = Failure(scan.name, result.reason)
            if isinstance(result, Failure):
                report.fail(result)
            else:
                tally.add(result)
            if progress is not None:
                progress(done, len(scans))
    if not tally.scans:
        raise report.nothing_read()
    return tally.climate(terrain)


def _lowest(scan: Scan) -> Sweep | Failure:
    """Return the lowest sweep of a scan without spikes and speckle: a task."""
    try:
        with guarded(scan.name, scan.format):
            sweeps, *_ = read_sweeps(scan, COUNTED)
    except Exception as error:
        return Failure.of(scan.name, error, scan.paths)
    return clean_sweeps(sweeps[:1], COUNTED, scan.format)[0].sweep
