"""NEXRAD Level II archive volumes (ICD for RDA/RPG and for Archive II), messages 1 and 31."""

from __future__ import annotations

import bz2
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.attributes import REFLECTIVITY, read_time
from nowcast.radar.header import Format, Header, Site
from nowcast.radar.plainfile import MOST_BYTES
from nowcast.radar.polar.cuts import lowest_cuts, sweeps_of
from nowcast.radar.polar.sweep import Sweep

if TYPE_CHECKING:
    import xarray as xr

# Waveform of a surveillance sweep in message 5: low pulse repetition, long range, no folding.
SURVEILLANCE = 1
# The site stands in the first radials, which follow the metadata record.
RECORDS_WITH_SITE = 4
# A record holds 120 radials at most, some 15 kB each.
MOST_RECORD = 1 << 24
VOLUME_HEADER = 24
# Date and time of the volume, number and kind (start, intermediate, end) of a real-time chunk.
CHUNK_NAME = re.compile(r"(\d{8})-(\d{6})-(\d{3})-[SIE]")
# Of a message: 12 bytes for the channel terminal manager, then its header, then its body.
MESSAGE = 12 + 16


def is_chunk(head: bytes) -> bool:
    """Return whether a file starts with a packed record, as a volume's later chunks do."""
    return head[4:7] == b"BZh"


def read_header(path: Path, name: str) -> Header:
    """Return the header of the volume, or of its chunk, at ``path``, called ``name``."""
    chunk = CHUNK_NAME.search(Path(name).name)
    with path.open("rb") as file:
        head = file.read(24)
        if is_chunk(head):
            station = _station_of_chunk(file, name, chunk)
            file.seek(0)
        else:
            if len(head) < 24:
                raise DataError(f"{name}: expected a volume header of 24 bytes, found {len(head)}")
            _check_records(file, path.stat().st_size, name)
            station = head[20:24].decode("ascii", "replace").strip("\x00 ") or "unknown"
            file.seek(VOLUME_HEADER)
        site = _find_site(file)
    if chunk is not None:  # all chunks of a volume carry the same time
        start = read_time(chunk[1], chunk[2])
    else:
        day, milliseconds = struct.unpack_from(">II", head, 12)
        since = np.timedelta64((day - 1) * 86_400_000 + milliseconds, "ms")
        start = np.datetime64("1970-01-01", "ms") + since  # which is day 1
    return Header(
        path=name,
        format=Format.NEXRAD,
        station=station,
        times=(start,),
        site=site,
        part=int(chunk[3]) if chunk else None,
    )


def _station_of_chunk(file: IO[bytes], name: str, chunk: re.Match[str] | None) -> str:
    """Return the station in a chunk's radials; the file's name states its volume."""
    if chunk is None:
        raise DataError(
            "expected the name of a chunk such as 20240601-120000-002-I, by which its volume is "
            f"known, found {Path(name).name}; keep the archive's names"
        )
    file.seek(0)
    names = (record[at : at + 4] for record in _records(file) for at in _radials(record))
    return next(names, b"unknown").decode("ascii", "replace")


def _check_records(file: IO[bytes], size: int, name: str) -> None:
    """Raise DataError when the last of the packed records breaks off.

    A volume that breaks off in its lowest sweep would read as one with a sector missing.
    """
    position = 24
    while position < size:
        file.seek(position)
        head = file.read(7)
        if head[4:7] != b"BZh":
            # Volumes of message 1 are not packed by record.
            return
        position += 4 + abs(struct.unpack_from(">i", head)[0])
    if position > size:
        raise DataError(f"{name}: truncated: expected {position} bytes or more, found {size}")


def _find_site(file: IO[bytes]) -> Site | None:
    """Return the site from the volume data block of the first radials (message 31), if any."""
    for _ in range(RECORDS_WITH_SITE):
        size = file.read(4)
        if len(size) < 4:
            return None
        record = file.read(abs(struct.unpack(">i", size)[0]))
        if not record.startswith(b"BZh"):
            # Volumes that are not packed record by record: look at the first messages as they are.
            record = size + record + file.read(400_000)
        else:
            record = _unpacked(record)
        at = record.find(b"RVOL")
        if 0 <= at <= len(record) - 20:
            latitude, longitude, ground, antenna = struct.unpack_from(">ffhH", record, at + 8)
            return Site.known(latitude, longitude, float(ground + antenna))
    return None


def read_sweeps(path: Path, cuts: int, moment: str | None) -> list[Sweep]:
    """Return the sweeps of the ``cuts`` lowest elevations."""
    import xradar

    with path.open("rb") as file:
        head = file.read(VOLUME_HEADER)
        first = next(_records(file), None)
        if first is None:  # not packed by record
            file.seek(0)
            content = file.read()
            lowest = _lowest(content, cuts)
        else:
            lowest = _lowest(head + first, cuts)
            file.seek(VOLUME_HEADER)
            content = head + b"".join(_up_to(_records(file), lowest))
    names = [f"sweep_{index}" for index in lowest] if lowest else None
    return sweeps_of(
        xradar.io.open_nexradlevel2_datatree(content, sweep=names), classify, cuts, moment
    )


def _records(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the unpacked records of a volume from the file's position; none if they are plain."""
    while len(size := file.read(4)) == 4:
        record = file.read(abs(struct.unpack(">i", size)[0]))
        if not record.startswith(b"BZh"):
            return
        yield _unpacked(record)


def _unpacked(record: bytes) -> bytes:
    data = bz2.BZ2Decompressor().decompress(record, MOST_RECORD + 1)
    if len(data) > MOST_RECORD:
        raise DataError(
            f"expected records of at most {MOST_RECORD >> 20} MB unpacked, found a larger one"
        )
    return data


def _up_to(records: Iterator[bytes], lowest: list[int]) -> Iterator[bytes]:
    """Yield records until the end of the sweeps ``lowest``; all without them.

    The low sweeps come first: most of a volume need not be unpacked.
    """
    size = 0
    for record in records:
        size += len(record)
        if size > MOST_BYTES:
            raise DataError(f"expected at most {MOST_BYTES >> 20} MB of records, found more")
        yield record
        # Elevations are numbered from 1 on.
        if (
            lowest
            and max((record[at + 22] for at in _radials(record)), default=0) > max(lowest) + 1
        ):
            return


def _radials(record: bytes) -> Iterator[int]:
    """Yield the offset of the body of each radial (message 31) of a record."""
    at = 0
    while at + MESSAGE + 24 <= len(record):
        halfwords, kind = struct.unpack_from(">HxB", record, at + 12)
        if kind == 31:
            yield at + MESSAGE
        # Messages of other types fill a fixed length.
        at += 12 + 2 * halfwords if kind == 31 and halfwords else 2432


def _lowest(content: bytes, cuts: int) -> list[int]:
    """Return the surveillance sweeps of the lowest cuts by the scan strategy; none if not known."""
    from xradar.io.backends.nexrad_level2 import NEXRADLevel2File

    with NEXRADLevel2File(content, loaddata=False) as file:
        strategy = file.msg_5 or {}
        elevations = strategy.get("elevation_data") or []
    chosen: list[int] = []
    for cut in lowest_cuts([float(entry["elevation_angle"]) for entry in elevations], cuts):
        surveillance = [i for i in cut if elevations[i]["waveform_type"] == SURVEILLANCE]
        # Repeats of the cut later in the volume (SAILS) are not needed.
        chosen += surveillance[:1] or cut
    return chosen


def classify(moment: xr.DataArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Separate raw 0 (below threshold: no echo) from raw 1 (range-folded: missing).

    xradar scales both like measurements: -33.0 and -32.5 dBZ.
    """
    values = moment.values
    scale = float(moment.encoding.get("scale_factor", 0.5))
    offset = float(moment.encoding.get("add_offset", -33.0))
    raw = (values - offset) / scale
    dry = np.abs(raw) < 0.5
    missing = np.isnan(values) | (np.abs(raw - 1.0) < 0.5)
    if moment.name not in REFLECTIVITY:
        return np.zeros_like(dry), missing | dry
    return dry, missing
