"""DWD's RADOLAN, RADKLIM and RADVOR composites (RY, RV, RW, WN, RX ...): a line, then the cells.

After the format descriptions of the German weather service (RADOLAN/RADVOR, Kompositformat; RV):
two bytes a cell, twelve bits of value, then flags for missing, negative and clutter, or one byte of
reflectivity in steps of half a dBZ; rows from south to north. Since version 5 (VS) of the format
the earth is an ellipsoid.
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
from nowcast.radar.plainfile import read_bytes
from nowcast.rain.grid import Grid

START = re.compile(rb"([A-Z][A-Z0-9])(\d{6})\d{5}(\d{4})BY *\d+")
HEADER_BYTES = 4096
END_OF_HEADER = b"\x03"

VALUE, MISSING, NEGATIVE, CLUTTER = 0x0FFF, 0x2000, 0x4000, 0x8000

SPHERE = 6_370_040.0
STEREOGRAPHIC = "+proj=stere +lat_0=90 +lat_ts=60 +lon_0=10"
CRS = f"{STEREOGRAPHIC} +a={SPHERE:.0f} +b={SPHERE:.0f} +units=m"
ELLIPSOID_SINCE = 5
CRS_ELLIPSOID = f"{STEREOGRAPHIC} +a=6378137 +b=6356752.3142451802 +units=m"
# Where 9 degrees east, 51 north lies from the south-western corner, in cells of 1 km.
REFERENCE = (9.0, 51.0)
CORNERS = {
    (900, 900): (450.0, 450.0),
    (1100, 900): (370.0, 550.0),
    (1500, 1400): (600.0, 800.0),
}
# Of DWD's "Radarkomposits - Projektionen und Gitter" 1.01: the middle of the north-western cell,
# metres in the projection, on the ellipsoid, and of the grid that has no other statement.
NORTH_WEST = {
    (900, 900): (-523196.83521777776, -3772588.861931134),
    (1200, 1100): (-543196.83521776402, -3622588.8619310018),
}
NORTH_WEST_ON_SPHERE = {(1200, 1100): (-542962.166921856585, -3609144.7242655745)}
SHAPES = (*CORNERS, (1200, 1100))
AMOUNTS = ("RY", "RV", "YW", "RW", "SF", "RH", "RB", "RQ", "RL", "RU", "RS", "EY", "EW")
#: Reflectivity in units of half a dBZ from -32.5 dBZ on, and the bytes of a cell.
REFLECTIVITY = {"RX": 1, "EX": 1, "WX": 1, "WN": 2}
STEP, LOWEST = 0.5, -32.5
MISSING_BYTE, CLUTTER_BYTE = 250, 249


def read_header(path: Path, name: str) -> Header:
    """Return the header of the composite at ``path``; its time is the end of the accumulation."""
    line, _ = _split(read_bytes(path, HEADER_BYTES))
    product, time = _product_and_time(line)
    if product not in (*AMOUNTS, *REFLECTIVITY):
        raise DataError(
            f"expected a RADOLAN product of rain amounts ({', '.join(AMOUNTS)}) or of reflectivity "
            f"({', '.join(REFLECTIVITY)}), found {product}; give files of one of these"
        )
    ahead = re.search(rb"VV *(\d+)", line)
    if ahead is not None and int(ahead[1]) > 0:
        raise DataError(
            f"expected an observation (VV 000 in the header), found a forecast for {int(ahead[1])} "
            "minutes ahead; give the files whose names end in _000"
        )
    interval = re.search(rb"INT *(\d+)(U1)?", line)
    if interval is None or int(interval[1]) < 1:
        raise DataError(f"expected the interval (INT) in the header, found {line[:80]!r}")
    unit = 24 * 60 if interval[2] else 1  # days, in the long sums of RADKLIM
    return Header(
        path=name,
        format=Format.RADOLAN,
        station=f"RADOLAN {product}",
        times=(time,),
        grid=_grid(line),
        accumulation=(
            None if product in REFLECTIVITY else np.timedelta64(int(interval[1]) * unit * 60, "s")
        ),
        reflectivity=product in REFLECTIVITY,
    )


def read_values(path: Path, header: Header, index: int) -> NDArray[np.float32]:
    """Return the mean rain rate in mm h-1, or dBZ, (ny, nx) with y and x increasing.

    Cells marked as clutter are missing.
    """
    content = read_bytes(path)
    line, start = _split(content)
    grid, (product, _) = _grid(line), _product_and_time(line)
    width = REFLECTIVITY.get(product, 2)
    size = width * grid.nx * grid.ny
    if len(content) - start != size:
        raise DataError(
            f"expected {size} bytes for {grid.shape} cells, found {len(content) - start}: "
            "damaged or truncated"
        )
    raw = np.frombuffer(content, f"<u{width}", offset=start).reshape(grid.shape)
    precision = re.search(rb"PR *E([-+]\d\d)", line)
    if precision is None:
        raise DataError(f"expected a precision like PR E-02 in the header, found {line[:60]!r}")
    if width == 1:
        number, missing = raw, raw >= CLUTTER_BYTE
    else:
        number, missing = raw & VALUE, (raw & (MISSING | NEGATIVE | CLUTTER)) != 0
    scale = 10.0 ** int(precision[1])
    if header.accumulation is None:
        values = (number * (STEP * scale) + LOWEST).astype(np.float32)
        values[number == 0] = -np.inf
    else:
        hours = header.accumulation / np.timedelta64(1, "h")
        values = number * np.float32(scale / hours)
    values[missing] = np.nan
    return values


def _split(content: bytes) -> tuple[bytes, int]:
    """Return the header and the offset of the first cell."""
    end = content.find(END_OF_HEADER, 0, HEADER_BYTES)
    if end < 0 or not START.match(content):
        raise DataError(f"expected a RADOLAN header that ends in 0x03, found {content[:24]!r}")
    return content[:end], end + 1


def _product_and_time(line: bytes) -> tuple[str, np.datetime64]:
    match = START.match(line)
    assert match is not None
    moment, month = match[2].decode(), match[3].decode()
    # Two digits of the year: the archive begins in 2001.
    date = f"20{month[2:]}{month[:2]}{moment[:2]}"
    return match[1].decode(), read_time(date, f"{moment[2:]}00")


def _grid(line: bytes) -> Grid:
    match = re.search(rb"GP *(\d+)x *(\d+)", line)
    shape = (int(match[1]), int(match[2])) if match else (0, 0)
    if shape not in SHAPES:
        raise DataError(
            f"expected a grid of {', '.join(f'{ny} x {nx}' for ny, nx in SHAPES)} cells, found "
            f"{shape[0]} x {shape[1]}; give files of one of these grids"
        )
    version = re.search(rb"VS *(\d+)", line)
    ellipsoid = version is not None and int(version[1]) >= ELLIPSOID_SINCE and shape in NORTH_WEST
    stated = NORTH_WEST if ellipsoid else NORTH_WEST_ON_SPHERE
    if shape in stated:
        x0, north = stated[shape]
        y0 = north - 1000.0 * (shape[0] - 1)
    else:
        x, y = pyproj.Proj(CRS)(*REFERENCE)
        west, south = CORNERS[shape]
        x0, y0 = x - west * 1000.0 + 500.0, y - south * 1000.0 + 500.0
    crs, (ny, nx) = CRS_ELLIPSOID if ellipsoid else CRS, shape
    return Grid(crs=crs, x0=x0, y0=y0, dx=1000.0, dy=1000.0, nx=nx, ny=ny)
