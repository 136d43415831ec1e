"""Composites of the Finnish Meteorological Institute: reflectivity as grey levels in PGM files.

Comments of the header have projection, time and quantity. Grey 0 is no echo, the highest grey is
missing, and between them dBZ = (grey - 64) / 2.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyproj
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.attributes import read_time
from nowcast.radar.header import Format, Header
from nowcast.radar.maps.projection import compare_corners
from nowcast.radar.plainfile import read_bytes
from nowcast.rain.grid import Grid

# With this radius the corners that the files give lie a whole number of pixels apart.
EARTH_RADIUS = 6_371_288
HEADER_BYTES = 1 << 16


def read_header(path: Path, name: str) -> Header:
    """Return the header of the composite at ``path``, called ``name``."""
    comments, width, height, _, _ = _parse(read_bytes(path, HEADER_BYTES))
    fields = dict(re.findall(r"^#\s*(\w+)\s+(.+?)\s*$", comments, re.MULTILINE))
    if "reflectivity" not in fields.get("param", "reflectivity").lower():
        raise DataError(
            f"expected reflectivity, found the parameter {fields['param']!r}"
            "; give composites of reflectivity"
        )
    time = fields.get("obstime", "")  # YYYYMMDDhhmm
    return Header(
        path=name,
        format=Format.FMI,
        station=" ".join(filter(None, (fields.get("composite_area"), fields.get("productname"))))
        or "FMI composite",
        times=(read_time(time[:8], time[8:] + "00"),),
        grid=_grid(fields, width, height),
        reflectivity=True,
    )


def read_values(path: Path, header: Header, index: int) -> NDArray[np.float32]:
    """Return dBZ (ny, nx) with y and x increasing; minus infinity is no echo, NaN is missing."""
    content = read_bytes(path)
    _, width, height, brightest, start = _parse(content)
    pixels = np.frombuffer(content, np.uint8, offset=start)
    if pixels.size < width * height:
        raise DataError(f"expected {width * height} pixels, found {pixels.size}: truncated")
    grey = pixels[: width * height].reshape(height, width)[::-1]
    dbz = (grey.astype(np.float32) - np.float32(64)) * np.float32(0.5)
    dbz[grey == 0] = -np.inf
    dbz[grey == brightest] = np.nan
    return dbz


def _parse(content: bytes) -> tuple[str, int, int, int, int]:
    """Return comments, width, height, highest grey and the offset of the first pixel."""
    match = re.match(rb"P5\s+((?:#[^\n]*\n)*)\s*(\d+)\s+(\d+)\s+((?:#[^\n]*\n)*)(\d+)\s", content)
    if match is None:
        raise DataError(f"expected the header of a binary PGM file (P5), found {content[:12]!r}")
    brightest = int(match[5])
    if brightest != 255:
        raise DataError(f"expected 255 grey levels, found {brightest}")
    comments = (match[1] + match[4]).decode("latin-1")
    return comments, int(match[2]), int(match[3]), brightest, match.end()


def _grid(fields: dict[str, str], width: int, height: int) -> Grid:
    if fields.get("type") != "stereographic":
        raise DataError(
            f"expected a stereographic projection, found {fields.get('type')!r}"
            "; fetch the file in that projection"
        )
    try:
        crs = (
            f"+proj=stere +lon_0={float(fields['centrallongitude'])} "
            f"+lat_0={float(fields['centrallatitude'])} +lat_ts={float(fields['truelatitude'])} "
            f"+a={EARTH_RADIUS} +b={EARTH_RADIUS} +units=m"
        )
        corner = [float(part) for part in fields["bottomleft"].split()]
        far_corner = [float(part) for part in fields.get("topright", "nan nan").split()]
        dx, dy = float(fields["metersperpixel_x"]), float(fields["metersperpixel_y"])
    except (KeyError, ValueError) as error:
        raise DataError(f"expected a complete projection in the comments ({error})") from None
    project = pyproj.Proj(crs)
    west, south = project(*corner)
    compare_corners((west, south), project(*far_corner), (width, height), (dx, dy), "m")
    return Grid(crs=crs, x0=west + dx / 2, y0=south + dy / 2, dx=dx, dy=dy, nx=width, ny=height)
