"""Files of one radar or one composite: what they agree on, and the few that do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import DataError
from nowcast.ingest.rain_map import Failure, missing_site
from nowcast.ingest.report import IngestReport
from nowcast.ingest.settings import IngestSettings
from nowcast.radar.header import Header
from nowcast.rain.grid import Grid

# Of files of several radars the few that are not of the radar of all others are damaged or strays.
FEW = 0.1


def of_one_radar(headers: list[Header], report: IngestReport) -> list[Header]:
    """Return the files of the one radar; a few of others are counted as failed.

    Raises
    ------
    DataError
        When more than a few are of others.
    """
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
            f"{names}; ingest each into a store of its own"
        )
    kept = []
    for header in headers:
        if (header.format, header.station) == usual:
            kept.append(header)
        else:
            report.fail(
                Failure(
                    header.path,
                    f"expected a scan of {usual[1]!r} ({usual[0]}) as the other files have, found "
                    f"one of {header.station!r} ({header.format})",
                )
            )
    return kept


def typical(headers: Sequence[Header]) -> Header:
    """Return the first file of those that agree on the site or grid that most files have.

    A file that does not know its site, or of which it is damaged, decides nothing.
    """
    places = Counter(place for header in headers if (place := header.grid or header.site))
    if not places:
        return headers[0]
    usual = places.most_common(1)[0][0]
    return next(header for header in headers if (header.grid or header.site) == usual)


def target_grid(header: Header, settings: IngestSettings) -> Grid:
    """Return the grid that a file's rain goes on: a composite's own, or one around the radar."""
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
