"""The one door to radar files: recognise a file, and read its header."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from daskdl.errors import DataError
from nowcast.radar import composite, volume
from nowcast.radar.formats import recognise
from nowcast.radar.header import Header


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
    if not header.times or any(np.isnat(time) for time in header.times):
        raise DataError(f"{path}: expected a time in the {format} file, found none")
    return header
