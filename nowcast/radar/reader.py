"""The one door to radar files: recognise a file, and read its header."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from daskdl.errors import DataError
from nowcast.radar.formats import recognise
from nowcast.radar.header import MOST_CELLS, Header
from nowcast.radar.maps import composite
from nowcast.radar.polar import volume

# What damage makes of a time is mostly zero or far away; no archive of digital scans is older.
FIRST, LAST = np.datetime64("1980-01-01"), np.datetime64("2100-01-01")


def read_header(path: Path) -> Header:
    """Return the header of a radar file of any format that is read.

    Raises
    ------
    DataError
        When it is no radar file, or is damaged.
    """
    format = recognise(path)
    reader = volume.read_header if format.polar else composite.read_header
    header = reader(path, format)
    wrong = [str(time) for time in header.times if not FIRST <= time < LAST]  # no time is not, too
    if wrong or not header.times:
        raise DataError(
            f"{path}: expected times from {FIRST} on and before {LAST}, found "
            f"{(*wrong, 'none')[0]}; mend the file or leave it out"
        )
    if header.grid is not None and header.grid.nx * header.grid.ny > MOST_CELLS:
        raise DataError(
            f"{path}: expected a grid of at most {MOST_CELLS} cells, found {header.grid.shape}"
            "; cut a part out of it"
        )
    return header
