"""Universal Format volumes (Barnes, 1980, Bulletin of the American Meteorological Society 61).

A file is a sequence of records of 16-bit words, one for each ray; positions count words from 1.
Angles and the seconds of the site are in 64ths. One code means no data; most writers use it for no
echo.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.header import Format, Header, Site
from nowcast.radar.polar.cuts import lowest_cuts
from nowcast.radar.polar.sweep import Sweep

REFLECTIVITY = ("CZ", "DB", "DZ", "ZH", "UZ", "ZT")
CORRELATION, PHASE = ("RH",), ("PH",)
MAGIC = b"UF"
#: Degrees between the angle a sweep was set to and its rays beyond which one of them is wrong.
OFF = 2.0
# In a field's header, after the word that says where its data begin: the bits of each number.
BITS = 18
# Words before the first field of the mandatory header, and that header.
MARKER = 4
MANDATORY = struct.Struct(">2s9h8s8s6hh6h2s2hhhh3h8sh")
SURVEILLANCE = (1, 8)  # PPI, and the number RadX writes for it
SIXTY_FOURTH = 1.0 / 64.0
#: Hours behind UTC of the time zones that a ray's header may name; what names none is UTC.
ZONES = {
    "UT": 0, "GM": 0, "Z": 0, "": 0, "ES": 5, "CS": 6, "MS": 7, "PS": 8, "ED": 4, "CD": 5, "MD": 6,
    "PD": 7,
}  # fmt: skip


@dataclass(frozen=True)
class Ray:
    """One ray: its mandatory header, and its record's offset in the file (bytes)."""

    start: int
    size: int
    data_header: int
    sweep: int
    name: str
    site: Site | None
    time: np.datetime64
    azimuth: float
    elevation: float
    mode: int
    fixed: float
    volume: int
    no_data: int


def is_uf(head: bytes) -> bool:
    """Return whether a file starts with a record of this format, after its length."""
    if len(head) < MARKER + MANDATORY.size or head[4:6] != MAGIC:
        return False
    size, words = struct.unpack_from(">I2xh", head)
    return bool(size == 2 * words)


def read_header(path: Path, name: str) -> Header:
    """Return the header of the volume at ``path``, called ``name`` in it."""
    with path.open("rb") as file:
        first = next(_rays(file.read(1 << 16), whole=False))
    return Header(
        path=name,
        format=Format.UF,
        station=first.name or "unknown",
        times=(first.time,),
        site=first.site,
    )


def read_sweeps(path: Path, cuts: int, moment: str | None) -> list[Sweep]:
    """Return the sweeps of the ``cuts`` lowest elevations."""
    content = path.read_bytes()
    turns: dict[int, list[Ray]] = {}
    for ray in _rays(content):
        if ray.mode in SURVEILLANCE:
            turns.setdefault(ray.sweep, []).append(ray)
    rays = list(turns.values())
    elevations = [float(np.median([ray.elevation for ray in turn])) for turn in rays]
    for turn, elevation in zip(rays, elevations, strict=True):
        _compare(turn, elevation)
    return [
        _read_sweep(content, rays[i], elevations[i], moment)
        for cut in lowest_cuts(elevations, cuts)
        for i in cut
    ]


def _compare(turn: list[Ray], elevation: float) -> None:
    """Refuse a sweep with rays of several volumes or places, or another angle than the set one."""
    fixed = float(np.median([ray.fixed for ray in turn]))
    # Writers that do not know the angle leave 0, or the code of no data.
    if -OFF < fixed != 0.0 and abs(fixed - elevation) > OFF:
        raise DataError(
            f"expected rays of the fixed angle, {fixed:g} degrees, found elevations of "
            f"{elevation:g}; mend either"
        )
    if len({(ray.volume, ray.site) for ray in turn}) > 1:
        raise DataError(
            "expected rays of one volume and one place in a sweep, found several; write each "
            "volume of a radar that stands still into a file of its own"
        )


def _rays(content: bytes, *, whole: bool = True) -> Iterator[Ray]:
    """Yield the rays of a file; with ``whole``, an incomplete one raises DataError."""
    at = 0
    while at + MARKER + MANDATORY.size <= len(content):
        if not is_uf(content[at : at + MARKER + MANDATORY.size]):
            raise DataError(f"expected a record of a ray at byte {at}, found something else")
        size = struct.unpack_from(">I", content, at)[0]
        if whole and at + MARKER + size > len(content):
            raise DataError(f"expected {at + MARKER + size} bytes or more, found {len(content)}")
        yield _ray(content, at + MARKER, size)
        # The length stands behind the record once more.
        at += size + 2 * MARKER
    if whole and at < len(content):
        raise DataError(
            f"truncated: expected a record at byte {at}, found {len(content) - at} bytes"
        )


def _ray(content: bytes, start: int, size: int) -> Ray:
    fields = MANDATORY.unpack_from(content, start)
    latitude, longitude = (
        degrees + (minutes + seconds * SIXTY_FOURTH / 60.0) / 60.0
        for degrees, minutes, seconds in (fields[12:15], fields[15:18])
    )
    year, month, day, hour, minute, second = fields[19:25]
    if year < 100:  # two digits, as on the tapes
        year += 1900 if year >= 70 else 2000
    text = f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}"
    *names, zone = (fields[i].decode("ascii", "replace").strip("\x00 ") for i in (10, 11, 25))
    if zone not in ZONES:
        raise DataError(
            f"expected a time zone of {', '.join(filter(None, ZONES))}, found {zone!r}"
            "; write the rays' times in UT"
        )
    if fields[8] > 1:
        raise DataError(f"expected one record for each ray, found record {fields[8]} of one")
    return Ray(
        start=start,
        size=size,
        data_header=fields[4],
        sweep=fields[9],
        name=names[0] or names[1],
        site=Site.known(latitude, longitude, float(fields[18])),
        time=np.datetime64(text, "ms") + np.timedelta64(ZONES[zone], "h"),
        azimuth=fields[26] * SIXTY_FOURTH % 360.0,
        elevation=fields[27] * SIXTY_FOURTH,
        mode=fields[28],
        fixed=fields[29] * SIXTY_FOURTH,
        volume=fields[6],
        no_data=fields[-1],
    )


def _read_sweep(content: bytes, rays: list[Ray], elevation: float, moment: str | None) -> Sweep:
    rays = sorted(rays, key=lambda ray: ray.azimuth)
    positions = _fields(content, rays[0])
    dbz, rhohv, phidp = (
        next((name for name in names if name in positions), None)
        for names in ((moment,) if moment else REFLECTIVITY, CORRELATION, PHASE)
    )
    ranges = _ranges(content, rays[0], positions[dbz or next(iter(positions))])
    return Sweep(
        elevation=elevation,
        azimuth=np.array([ray.azimuth for ray in rays]),
        range=ranges,
        time=min(ray.time for ray in rays),
        site=rays[0].site,
        dbz=None if dbz is None else _values(content, rays, dbz, ranges.size),
        rhohv=None if rhohv is None else _values(content, rays, rhohv, ranges.size),
        phidp=None if phidp is None else _values(content, rays, phidp, ranges.size),
    )


def _words(content: bytes, ray: Ray, position: int, count: int) -> tuple[int, ...]:
    """Return words of a ray's record from ``position`` (from 1) on."""
    if position < 1 or 2 * (position - 1 + count) > ray.size:
        raise DataError(f"expected positions inside of a ray's record, found word {position}")
    return struct.unpack_from(f">{count}h", content, ray.start + 2 * (position - 1))


def _fields(content: bytes, ray: Ray) -> dict[str, int]:
    """Return the position of each field's header by the field's two letters."""
    (count,) = _words(content, ray, ray.data_header, 1)
    positions: dict[str, int] = {}
    for i in range(count):
        word, position = _words(content, ray, ray.data_header + 3 + 2 * i, 2)
        name = struct.pack(">h", word).decode("ascii", "replace").strip("\x00 ")
        if positions.setdefault(name, position) != position:
            raise DataError(f"expected each field of a ray once, found {name} twice")
    if not positions:
        raise DataError("expected fields in a ray, found none")
    return positions


def _ranges(content: bytes, ray: Ray, position: int) -> NDArray[np.float64]:
    """Return the middles of the gates; the header has the first one in km and metres."""
    _, _, kilometres, metres, spacing, count = _words(content, ray, position, 6)
    if spacing < 1 or count < 1:
        raise DataError(f"expected gates with a spacing, found {count} of {spacing} m")
    start = 1000.0 * kilometres + metres
    return start + spacing * np.arange(count, dtype=np.float64)


def _values(content: bytes, rays: list[Ray], name: str, gates: int) -> NDArray[np.float32]:
    """Return a field, (rays, gates) float32; NaN where a ray has no data or is shorter."""
    values = np.full((len(rays), gates), np.nan, np.float32)
    spacings = set[tuple[int, ...]]()
    for row, ray in zip(values, rays, strict=True):
        position = _fields(content, ray).get(name)
        if position is None:
            continue
        data, scale, *spacing, count = _words(content, ray, position, 6)
        (bits,) = _words(content, ray, position + BITS, 1)
        if bits not in (0, 16, ray.no_data):
            raise DataError(f"expected {name} in words of 16 bits, found {bits}")
        spacings.add(tuple(spacing))
        if len(spacings) > 1:
            raise DataError(
                f"expected gates of {name} alike in all rays of a sweep (km and m to the first, m "
                f"between), found {' and '.join(map(str, sorted(spacings)))}; leave the file out"
            )
        if scale == 0 or count < 0:
            raise DataError(f"expected a scale and a number of gates of {name}, found {scale}")
        count = min(count, gates)
        raw = np.array(_words(content, ray, data, count), np.int16)
        row[:count] = np.where(raw == ray.no_data, np.float32(np.nan), raw / np.float32(scale))
    return values
