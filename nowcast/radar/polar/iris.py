"""Sigmet/IRIS RAW volumes (Vaisala, IRIS Programmer's Manual, chapter 4)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nowcast.radar.header import Format, Header, Site
from nowcast.radar.polar.cuts import sweeps_of
from nowcast.radar.polar.sweep import COHERENCE, CORRELATION, PHASE, VELOCITY, Sweep

if TYPE_CHECKING:
    import xarray as xr

# Raw 0 is "no data available" (below the thresholds), the highest raw value "area not scanned". As
# dBZ these are -32 and 95.5 in the one-byte and -327.68 and 327.67 in the two-byte data types.
NO_ECHO, NOT_SCANNED = -32.0, 95.5


def read_header(path: Path, name: str) -> Header:
    """Return the header of the volume at ``path``, called ``name`` in it."""
    from xradar.io.backends.iris import IrisRawFile

    with IrisRawFile(str(path), loaddata=False) as file:
        ingest = file.ingest_header["ingest_configuration"]
    start = ingest["volume_scan_start_time"].replace(tzinfo=None)
    return Header(
        path=name,
        format=Format.IRIS,
        station=str(ingest["site_name"]).strip() or "unknown",
        times=(np.datetime64(start, "ms"),),
        site=Site.known(
            _signed(ingest["latitude_radar"]),
            _signed(ingest["longitude_radar"]),
            ingest["altitude_radar"] / 100.0,
        ),
    )


def _signed(angle: float) -> float:
    """Return a binary angle of 0 to 360 degrees as -180 to 180."""
    return (float(angle) + 180.0) % 360.0 - 180.0


def read_sweeps(path: Path, cuts: int, moment: str | None) -> list[Sweep]:
    """Return the sweeps of the ``cuts`` lowest elevations."""
    import xradar

    # Handed over as bytes: of a file by name the reader leaves the handle to the collector, and of
    # a stream it sorts the rays' azimuths but not their data.
    return sweeps_of(xradar.io.open_iris_datatree(path.read_bytes()), classify, cuts, moment)


def classify(moment: xr.DataArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Separate gates below the thresholds (no echo) from gates that were not scanned (missing)."""
    values = moment.values
    missing = np.isnan(values)
    if moment.name in VELOCITY:
        return np.zeros_like(missing), missing
    if moment.name in CORRELATION + PHASE + COHERENCE:
        return values <= 0.0, missing
    return values <= NO_ECHO, missing | (values >= NOT_SCANNED)
