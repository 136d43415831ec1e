"""DWD's RADOLAN and RADKLIM composites (RY, YW, RW ...): a line of text, then two bytes a cell.

After the format description of the German weather service (RADOLAN/RADVOR, Kompositformat): twelve
bits of value, then flags for missing, negative and clutter; rows from south to north.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.header import Format, Header
from nowcast.radar.plainfile import read_bytes
from nowcast.rain.grid import Grid

START = re.compile(rb"([A-Z][A-Z0-9])(\d{6})\d{5}(\d{4})BY *\d+")
HEADER_BYTES = 4096
END_OF_HEADER = b"\x03"

VALUE, MISSING, NEGATIVE, CLUTTER = 0x0FFF, 0x2000, 0x4000, 0x8000

SPHERE = 6_370_040.0
CRS = f"+proj=stere +lat_0=90 +lat_ts=60 +lon_0=10 +a={SPHERE:.0f} +b={SPHERE:.0f} +units=m"
# Where 9 degrees east, 51 north lies from the south-western corner, in cells of 1 km.
REFERENCE = (9.0, 51.0)
CORNERS = {
    (900, 900): (450.0, 450.0),
    (1100, 900): (370.0, 550.0),
    (1500, 1400): (600.0, 800.0),
}
AMOUNTS = ("RY", "YW", "RW", "SF", "RH", "RB", "RQ", "RL", "RU", "RS")


def read_header(path: Path, name: str) -> Header:
    """Return the header of the composite at ``path``; its time is the end of the accumulation."""
    line, _ = _split(read_bytes(path, HEADER_BYTES))
    product, time = _product_and_time(line)
    if product not in AMOUNTS:
        raise DataError(
            f"expected a RADOLAN product of rain amounts ({', '.join(AMOUNTS)}), found {product}"
            "; give files of one of these"
        )
    ahead = re.search(rb"VV *(\d+)", line)
    if ahead is not None and int(ahead[1]) > 0:
        raise DataError(
            f"expected an observation (VV 000 in the header), found a forecast for {int(ahead[1])} "
            "minutes ahead; give the files whose names end in _000"
        )
    unit, length = 1, _number(line, rb"INT *(\d+)", "interval (INT)")
    if re.search(rb"INT *\d+U1", line):
        unit = 24 * 60  # days, in the long sums of RADKLIM
    return Header(
        path=name,
        format=Format.RADOLAN,
        station=f"RADOLAN {product}",
        times=(time,),
        grid=_grid(line),
        accumulation=np.timedelta64(int(length * unit * 60), "s"),
    )


def read_values(path: Path, header: Header, index: int) -> NDArray[np.float32]:
    """Return the rain rate in mm h-1, (ny, nx) with y and x increasing, mean over the interval.

    Cells marked as clutter are missing.
    """
    content = read_bytes(path)
    line, start = _split(content)
    grid = _grid(line)
    cells = grid.nx * grid.ny
    if len(content) - start != 2 * cells:
        raise DataError(
            f"expected {2 * cells} bytes for {grid.shape} cells, found {len(content) - start}: "
            "damaged or truncated"
            "; fetch the file again"
        )
    raw = np.frombuffer(content, "<u2", offset=start).reshape(grid.shape)
    found = re.search(rb"PR *E([-+]\d\d)", line)
    if found is None:
        raise DataError(
            f"expected a precision like PR E-02 in the header, found {line[:60]!r}"
            "; fetch the file again"
        )
    assert header.accumulation is not None
    hours = header.accumulation / np.timedelta64(1, "h")
    rain = (raw & VALUE) * np.float32(10.0 ** int(found[1]) / hours)
    rain[(raw & (MISSING | NEGATIVE | CLUTTER)) != 0] = np.nan
    return rain


def _split(content: bytes) -> tuple[bytes, int]:
    """Return the header and the offset of the first cell."""
    end = content.find(END_OF_HEADER, 0, HEADER_BYTES)
    if end < 0 or not START.match(content):
        raise DataError(
            f"expected a RADOLAN header that ends in 0x03, found {content[:24]!r}"
            "; fetch the file again"
        )
    return content[:end], end + 1


def _product_and_time(line: bytes) -> tuple[str, np.datetime64]:
    found = START.match(line)
    assert found is not None
    moment, month = found[2].decode(), found[3].decode()
    # Two digits of the year: the archive begins in 2001.
    text = f"20{month[2:]}-{month[:2]}-{moment[:2]}T{moment[2:4]}:{moment[4:]}"
    return found[1].decode(), np.datetime64(text, "s")


def _number(line: bytes, pattern: bytes, what: str) -> int:
    found = re.search(pattern, line)
    if found is None or int(found[1]) < 1:
        raise DataError(
            f"expected the {what} in the header, found {line[:80]!r}; fetch the file again"
        )
    return int(found[1])


def _grid(line: bytes) -> Grid:
    import pyproj

    found = re.search(rb"GP *(\d+)x *(\d+)", line)
    shape = (int(found[1]), int(found[2])) if found else (0, 0)
    if shape not in CORNERS:
        raise DataError(
            f"expected a grid of {', '.join(f'{ny} x {nx}' for ny, nx in CORNERS)} cells, found "
            f"{shape[0]} x {shape[1]}"
            "; give files of one of these grids"
        )
    x, y = pyproj.Proj(CRS)(*REFERENCE)
    west, south = CORNERS[shape]
    return Grid(
        crs=CRS,
        x0=x - west * 1000.0 + 500.0,
        y0=y - south * 1000.0 + 500.0,
        dx=1000.0,
        dy=1000.0,
        nx=shape[1],
        ny=shape[0],
    )
