"""CfRadial volumes: 1 (NCAR/EOL, CF conventions for radial data), and 2 (WMO's FM 301).

Version 1 is netCDF-3 or netCDF-4; version 2 has a netCDF-4 group for each sweep.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.attributes import text_of
from nowcast.radar.header import Format, Header, compare_times
from nowcast.radar.netcdf import engine_of, open_dataset
from nowcast.radar.polar.cuts import sweeps_of
from nowcast.radar.polar.sweep import Sweep, site_of

if TYPE_CHECKING:
    import xarray as xr

#: The variable of version 1 that says where each sweep begins.
STARTS = "sweep_start_ray_index"
SWEEP = re.compile(r"sweep_\d+")


def read_header(path: Path, name: str) -> Header:
    """Return the header of the volume at ``path``, called ``name`` in it."""
    with open_dataset(path) as root:
        first, count = _first_ray(path, root)
        _check_statements(root, first)
        named = root.attrs.get("instrument_name") or root.attrs.get("site_name")
        return Header(
            path=name,
            format=Format.CFRADIAL if STARTS in root.variables else Format.CFRADIAL2,
            station=str(named or "unknown"),
            times=(first.astype("datetime64[ms]"),),
            site=site_of(root),
            single_sweep=count == 1,
        )


def read_sweeps(path: Path, cuts: int, moment: str | None) -> list[Sweep]:
    """Return the sweeps of the ``cuts`` lowest elevations.

    xradar decodes the times itself, without the zones that
    :func:`~nowcast.radar.netcdf.open_dataset` understands; the error is corrected here.
    """
    import xradar

    with open_dataset(path) as root:
        first, _ = _first_ray(path, root)
        one = STARTS in root.variables
    if one:
        tree = xradar.io.open_cfradial1_datatree(path, engine=engine_of(path))
    else:
        tree = xradar.io.open_cfradial2_datatree(path, first_dim="auto", engine="h5netcdf")
    sweeps = [tree[key].to_dataset() for key in tree.match("sweep_*").children]
    decoded = min(np.asarray(sweep["time"].values).min() for sweep in sweeps)
    shift = (first - decoded).astype("timedelta64[ms]")
    read = sweeps_of(tree, classify, cuts, moment)
    return [replace(sweep, time=sweep.time + shift) for sweep in read]


def _first_ray(path: Path, root: xr.Dataset) -> tuple[np.datetime64, int]:
    """Return the time of the first ray of a volume, and the number of its sweeps."""
    if STARTS in root.variables:
        if "time" not in root.variables or not root["time"].size:
            raise DataError("expected the rays' times in a variable 'time', found none")
        return root["time"].values.min(), root.sizes.get("sweep", 1)
    with h5py.File(path, "r") as file:
        groups = [name for name in file if SWEEP.fullmatch(name)]
    starts = []
    for group in groups:
        with open_dataset(path, group) as sweep:
            if "time" in sweep.variables and sweep["time"].dtype.kind == "M":
                starts.append(sweep["time"].values.min())
    if not starts:
        raise DataError("expected the rays' times in a variable 'time' of each sweep, found none")
    return min(starts), len(starts)


def _check_statements(root: xr.Dataset, first: np.datetime64) -> None:
    """Refuse statements of a volume's root that sweeps here would not follow.

    So it is where the radar moves, its angles or ranges wait for corrections
    (``azimuth_correction`` and others, CfRadial 1.4, 5.7), or the volume starts at another time
    than its first ray.
    """
    moving = "platform_is_mobile" in root and text_of(root["platform_is_mobile"].values) == "true"
    if moving or str(root.attrs.get("platform_is_mobile", "")).lower() == "true":
        raise DataError("expected a radar that stands still, found platform_is_mobile true")
    waiting = [
        str(name)
        for name, variable in root.variables.items()
        if str(name).endswith("_correction") and np.nan_to_num(variable.values).any()
    ]
    if waiting:
        raise DataError(f"expected angles and ranges as they are, found {', '.join(waiting)}"
                        "; apply the corrections and write them as 0")  # fmt: skip
    stated = root["time_coverage_start"].values if "time_coverage_start" in root else ""
    try:
        start = np.datetime64(text_of(stated).removesuffix("Z") or "NaT", "ms")
    except ValueError:
        return
    compare_times("time_coverage_start", start, first)


def classify(moment: xr.DataArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mark no echo where the file says so (``_Undetect``, as xradar exports it); fill is missing.

    Most CfRadial files also write the fill value for no echo: :func:`nowcast.ingest.rain_map` reads
    it so in sweeps without another code.
    """
    values = moment.values
    missing = np.isnan(values)
    undetect = moment.attrs.get("_Undetect", moment.encoding.get("_Undetect"))
    if undetect is None:
        return np.zeros_like(missing), missing
    gain = float(moment.encoding.get("scale_factor", 1.0))
    silent = float(undetect) * gain + float(moment.encoding.get("add_offset", 0.0))
    return np.abs(values - silent) <= max(abs(gain) * 1e-3, abs(silent) * 1e-6), missing
