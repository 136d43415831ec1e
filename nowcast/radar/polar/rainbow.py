"""Rainbow 5 volumes (Leonardo/Selex, .vol): an XML header followed by packed blobs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.header import Format, Header, Site
from nowcast.radar.polar.cuts import sweeps_of
from nowcast.radar.polar.sweep import Sweep

if TYPE_CHECKING:
    import xarray as xr

END_OF_HEADER = b"<!-- END XML -->"


def read_header(path: Path, name: str) -> Header:
    """Return the header of the volume at ``path``, called ``name`` in it."""
    with path.open("rb") as file:
        head = file.read(1 << 20)
    end = head.find(END_OF_HEADER)
    if end < 0:
        raise DataError(f"{name}: expected a Rainbow header that ends in {END_OF_HEADER!r}")
    text = head[:end].decode("latin-1")
    # The scan's time is its start; the volume's datetime is when the file was made.
    scan = re.search(r"<scan\s[^>]*>", text)
    start = _attribute(scan[0], "date") + "T" + _attribute(scan[0], "time") if scan else ""
    try:
        time = np.datetime64(start, "s")
    except ValueError:
        raise DataError(f"{name}: expected the scan's date and time, found {start!r}") from None
    sensor = re.search(r"<sensorinfo\s.*?</sensorinfo>", text, re.DOTALL)
    block = sensor[0] if sensor else ""
    return Header(
        path=name,
        format=Format.RAINBOW,
        station=_attribute(block, "id") or "unknown",
        times=(time,),
        site=Site.known(*(_number(block, tag) for tag in ("lat", "lon", "alt"))),
    )


def _attribute(tag: str, name: str) -> str:
    match = re.search(rf'\s{name}="([^"]*)"', tag)
    return match[1] if match else ""


def _number(block: str, tag: str) -> float:
    match = re.search(rf"<{tag}>\s*([-+\d.eE]+)\s*</{tag}>", block)
    return float(match[1]) if match else float("nan")


def read_sweeps(path: Path, cuts: int, moment: str | None) -> list[Sweep]:
    """Return the sweeps of the ``cuts`` lowest elevations."""
    import xradar

    return sweeps_of(xradar.io.open_rainbow_datatree(str(path)), classify, cuts, moment)


def classify(moment: xr.DataArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mark raw 0 (below the thresholds) as no echo; Rainbow has no code for missing."""
    values = moment.values
    offset = float(moment.encoding.get("add_offset", -32.0))
    scale = float(moment.encoding.get("scale_factor", 0.5))
    return np.abs(values - offset) < abs(scale) / 2, np.isnan(values)
