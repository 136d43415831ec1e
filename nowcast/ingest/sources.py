"""The files of a user's sources: files, folders and patterns."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import DataError
from nowcast.ingest.rain_map import Failure, missing_site
from nowcast.ingest.report import IngestReport
from nowcast.ingest.settings import IngestSettings
from nowcast.radar.header import Header
from nowcast.radar.plainfile import is_zarr
from nowcast.rain.grid import Grid


@dataclass
class Sources:
    """Files to look into.

    Files ``named`` by the user, or matched by a pattern, must be radar files. Files ``found`` in
    folders are ignored if they are not, unless they have a radar file's ending.
    """

    named: list[Path] = field(default_factory=list)
    found: list[Path] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.named) + len(self.found)

    def size(self) -> int:
        """Return the number of bytes of all files."""
        return sum(path.stat().st_size for path in [*self.named, *self.found])


def find_files(sources: Iterable[str | os.PathLike[str]]) -> Sources:
    """Return the files of sources, each once, sorted within each folder or pattern.

    A zarr store is one source. Other folders are searched recursively, without hidden folders and
    zarr stores, since an ingest may write one there. Raises DataError if a source does not exist or
    a pattern matches nothing.
    """
    result = Sources()
    seen: set[str] = set()
    for source in sources:
        path = Path(source)
        if not str(source):  # an unset variable of a script would be the current folder
            raise DataError(
                "sources: expected a file, a folder or a pattern, found an empty "
                "name; check the variable or the quotes in the command"
            )
        names = [path] if path.exists() else glob.glob(str(source), recursive=True)
        matches = sorted(map(Path, names))
        if not matches:
            raise DataError(
                f"{source}: expected a file, a folder or a pattern, found nothing there; "
                "check the path from the folder where the command runs"
            )
        for match in matches:
            if match.is_dir() and not is_zarr(match):
                _add(result.found, sorted(_walk(match)), seen)
            else:
                _add(result.named, [match], seen)
    return result


def _walk(folder: Path) -> Iterable[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = [
            name for name in folders if not name.startswith(".") and not is_zarr(Path(root, name))
        ]
        yield from (Path(root, name) for name in names if not name.startswith("."))


def _add(files: list[Path], matches: Iterable[Path], seen: set[str]) -> None:
    for path in matches:
        real = os.path.realpath(path)
        if real not in seen:
            seen.add(real)
            files.append(path)


# Of files of several radars the few that are not of the radar of all others are damaged or strays.
FEW = 0.1


def of_one_radar(headers: list[Header], report: IngestReport) -> list[Header]:
    """Return the files of one radar; a few of others count as failed, more raise a DataError."""
    stations = {(header.format, header.station): header for header in reversed(headers)}
    counts = Counter((header.format, header.station) for header in headers)
    if len(stations) <= 1:
        return headers
    usual, times = counts.most_common(1)[0]
    if len(headers) - times > FEW * len(headers):
        names = ", ".join(
            f"{station} ({format}, {Path(header.path).name})"
            for (format, station), header in list(stations.items())[:6]
        )
        raise DataError(
            f"sources: expected scans of one radar or one composite, found {len(stations)}: "
            f"{names}; give those of one alone, or ingest radars into one map by --mosaic"
        )
    matching = []
    for header in headers:
        if (header.format, header.station) == usual:
            matching.append(header)
        else:
            report.fail(
                Failure(
                    header.path,
                    f"expected a scan of {usual[1]!r} ({usual[0]}) as the other files have, found "
                    f"one of {header.station!r} ({header.format})",
                )
            )
    return matching


def typical(headers: Sequence[Header]) -> Header:
    """Return the first file with the site or grid that most files have.

    Files without a site, or with a damaged one, do not count.
    """
    places = Counter(place for header in headers if (place := header.grid or header.site))
    if not places:
        return headers[0]
    usual = places.most_common(1)[0][0]
    return next(header for header in headers if (header.grid or header.site) == usual)


def target_grid(header: Header, settings: IngestSettings) -> Grid:
    """Return the grid of a file's rain: a composite's own, or one around the radar."""
    if header.grid is not None:
        return header.grid
    site = settings.site or header.site
    if site is None:
        raise DataError(missing_site(header.path))
    return Grid.around(
        site.latitude,
        site.longitude,
        size=settings.size,
        spacing=settings.spacing,
        centre=settings.centre,
    )


def store_attributes(
    header: Header, settings: IngestSettings
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes of a store's rain and of the store."""
    of_rain: dict[str, Any] = {}
    if header.accumulation is None:
        # Rates in files are rates already; everything else comes through the Z-R relation.
        if header.reflectivity or header.format.polar:
            of_rain |= settings.describe(polar=header.format.polar)
    else:
        minutes = header.accumulation / np.timedelta64(1, "m")
        of_rain |= {
            "cell_methods": f"time: mean (interval: {minutes:g} minutes)",
            "comment": "mean over the interval that ends at the valid time",
        }
    return of_rain, {
        "title": f"Radar rain rate, {header.station}",
        "source": f"weather radar, {header.format.value}, station {header.station}",
        "station": header.station,
    }
