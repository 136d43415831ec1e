"""CfRadial 2 volumes (WMO's FM 301): a netCDF-4 group for each sweep."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from daskdl.errors import DataError
from nowcast.radar.header import Format, Header
from nowcast.radar.netcdf import open_dataset
from nowcast.radar.polar.cfradial import at_true_times, check_statements, classify, station_of
from nowcast.radar.polar.sweep import Sweep, site_of
from nowcast.radar.polar.tree import sweeps_of

SWEEP = re.compile(r"sweep_\d+")


def read_header(path: Path, name: str) -> Header:
    """Return the header of the volume at ``path``, called ``name`` in it."""
    starts = _starts(path)
    with open_dataset(path) as root:
        check_statements(root, min(starts))
        return Header(
            path=name,
            format=Format.CFRADIAL2,
            station=station_of(root),
            times=(min(starts).astype("datetime64[ms]"),),
            site=site_of(root),
            single_sweep=len(starts) == 1,
        )


def read_sweeps(path: Path, cuts: int, moment: str | None) -> list[Sweep]:
    """Return the sweeps of the ``cuts`` lowest elevations."""
    import xradar

    first = min(_starts(path))
    tree = xradar.io.open_cfradial2_datatree(path, first_dim="auto", engine="h5netcdf")
    return at_true_times(tree, first, lambda: sweeps_of(tree, classify, cuts, moment))


def _starts(path: Path) -> list[np.datetime64]:
    """Return the time of the first ray of each sweep."""
    import h5py

    with h5py.File(path, "r") as file:
        groups = [name for name in file if SWEEP.fullmatch(name)]
    starts = []
    for group in groups:
        with open_dataset(path, group) as sweep:
            if "time" in sweep.variables and sweep["time"].dtype.kind == "M":
                starts.append(sweep["time"].values.min())
    if not starts:
        raise DataError("expected the rays' times in a variable 'time' of each sweep, found none")
    return starts
