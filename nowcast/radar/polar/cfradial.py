"""CfRadial 1 volumes (NCAR/EOL, CF conventions for radial data), netCDF-3 or netCDF-4."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.attributes import text_of
from nowcast.radar.header import Format, Header, compare_times
from nowcast.radar.netcdf import engine_of, open_dataset
from nowcast.radar.polar.sweep import Sweep, site_of
from nowcast.radar.polar.tree import sweeps_of

if TYPE_CHECKING:
    import xarray as xr


def read_header(path: Path, name: str) -> Header:
    """Return the header of the volume at ``path``, called ``name`` in it."""
    with open_dataset(path) as dataset:
        if "time" not in dataset.variables or not dataset["time"].size:
            raise DataError(f"{name}: expected the rays' times in a variable 'time', found none")
        first = dataset["time"].values.min()
        check_statements(dataset, first)
        return Header(
            path=name,
            format=Format.CFRADIAL,
            station=station_of(dataset),
            times=(first.astype("datetime64[ms]"),),
            site=site_of(dataset),
            single_sweep=dataset.sizes.get("sweep", 1) == 1,
        )


def read_sweeps(path: Path, cuts: int, moment: str | None) -> list[Sweep]:
    """Return the sweeps of the ``cuts`` lowest elevations."""
    import xradar

    with open_dataset(path) as dataset:
        first = dataset["time"].values.min()
    tree = xradar.io.open_cfradial1_datatree(path, engine=engine_of(path))
    return at_true_times(tree, first, lambda: sweeps_of(tree, classify, cuts, moment))


def check_statements(root: xr.Dataset, first: np.datetime64) -> None:
    """Refuse what a volume's root says of it and sweeps here do not follow.

    Raises
    ------
    DataError
        When the radar moves, its angles or ranges wait for corrections (``azimuth_correction`` and
        others, CfRadial 1.4, 5.7), or the volume starts at another time than its first ray.
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


def station_of(dataset: xr.Dataset) -> str:
    """Return the name of the radar or of its site."""
    return str(dataset.attrs.get("instrument_name") or dataset.attrs.get("site_name") or "unknown")


def at_true_times(
    tree: xr.DataTree, first: np.datetime64, read: Callable[[], list[Sweep]]
) -> list[Sweep]:
    """Return the sweeps of xradar's tree with their times shifted, so that its first is ``first``.

    xradar decodes the times by itself, and so without the zones that
    :func:`~nowcast.radar.netcdf.open_dataset` understands.
    """
    sweeps = [tree[key].to_dataset() for key in tree.match("sweep_*").children]
    decoded = min(np.asarray(sweep["time"].values).min() for sweep in sweeps)
    shift = (first - decoded).astype("timedelta64[ms]")
    return [replace(sweep, time=sweep.time + shift) for sweep in read()]


def classify(moment: xr.DataArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell no echo where the file says so (``_Undetect``, as xradar exports it); fill is missing.

    Most CfRadial files write the fill value for no echo too: :func:`nowcast.ingest.rain_map` takes
    it for that in sweeps that have no other way to say it.
    """
    values = moment.values
    missing = np.isnan(values)
    undetect = moment.attrs.get("_Undetect", moment.encoding.get("_Undetect"))
    if undetect is None:
        return np.zeros_like(missing), missing
    gain = float(moment.encoding.get("scale_factor", 1.0))
    silent = float(undetect) * gain + float(moment.encoding.get("add_offset", 0.0))
    return np.abs(values - silent) <= max(abs(gain) * 1e-3, abs(silent) * 1e-6), missing
