"""GAMIC's own HDF5 volumes (.mvol): a group ``scan0``, ``scan1`` ... for each sweep."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.attributes import number, text
from nowcast.radar.header import Format, Header, Site, compare_times
from nowcast.radar.polar.cuts import sweeps_of
from nowcast.radar.polar.sweep import Sweep

if TYPE_CHECKING:
    import xarray as xr

SCAN = re.compile(r"scan\d+")


def read_header(path: Path, name: str) -> Header:
    """Return the header of the volume at ``path``, called ``name`` in it."""
    with h5py.File(path, "r") as file:
        scans = [file[key] for key in file if SCAN.fullmatch(key) and "how" in file[key]]
        stamps = [text(scan["how"], "timestamp").removesuffix("Z") for scan in scans]
        date = text(file.get("what", file), "date").removesuffix("Z")
        try:
            *starts, stated = (np.datetime64(one, "ms") for one in (*stamps, date))
        except ValueError:
            texts = ", ".join((*stamps, date))
            raise DataError(f"expected each scan's timestamp and a date, found {texts}") from None
        compare_times("what/date", stated, min(starts))
        names = [
            text(file[group], key)
            for group, key in (("how", "site_name"), ("how", "host_name"), ("what", "source"))
            if group in file
        ]
        where = file.get("where", file)
        site = Site.known(*(number(where, key, np.nan) for key in ("lat", "lon", "height")))
        return Header(
            path=name,
            format=Format.GAMIC,
            station=next((one for one in names if one), "unknown"),
            times=(min(starts),),
            site=site,
            single_sweep=len(scans) == 1,
        )


def read_sweeps(path: Path, cuts: int, moment: str | None) -> list[Sweep]:
    """Return the sweeps of the ``cuts`` lowest elevations."""
    import xradar

    return sweeps_of(xradar.io.open_gamic_datatree(path), classify, cuts, moment)


def classify(moment: xr.DataArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mark raw 0, the only code, as no echo: it is below the thresholds."""
    dry = np.isnan(moment.values)
    return dry, np.zeros_like(dry)
