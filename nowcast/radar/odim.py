"""ODIM_H5 polar volumes and single sweeps (Michelson et al., OPERA data information model)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.cuts import lowest_cuts
from nowcast.radar.formats import attribute
from nowcast.radar.header import Format, Header
from nowcast.radar.site import Site
from nowcast.radar.sweep import site_of

if TYPE_CHECKING:
    import xarray as xr


def read_header(path: Path, name: str) -> Header:
    """Return the header of the ODIM_H5 file at ``path``, called ``name`` in it."""
    import h5py

    with h5py.File(path, "r") as file:
        times = [
            _time(
                attribute(file[key]["what"], "startdate"), attribute(file[key]["what"], "starttime")
            )
            for key in _datasets(file)
            if "what" in file[key]
        ]
        if not times:
            raise DataError(f"{name}: expected at least one dataset with a start time, found none")
        where: Any = file["where"].attrs if "where" in file else {}
        return Header(
            path=name,
            format=Format.ODIM,
            station=_station(attribute(file["what"], "source")),
            times=(min(times),),
            site=Site.known(*(float(where.get(key, np.nan)) for key in ("lat", "lon", "height"))),
            single_sweep=attribute(file["what"], "object") == "SCAN",
        )


@contextmanager
def open_sweeps(path: Path, cuts: int) -> Iterator[tuple[Site | None, list[xr.Dataset]]]:
    """Give site and sweeps of the ``cuts`` lowest elevations."""
    import h5py
    import xarray as xr

    with h5py.File(path, "r") as file:
        elevations = [float(file[key]["where"].attrs["elangle"]) for key in _datasets(file)]
    with ExitStack() as stack:
        sweeps = [
            stack.enter_context(xr.open_dataset(path, engine="odim", group=f"sweep_{index}"))
            for cut in lowest_cuts(elevations, cuts)
            for index in cut
        ]
        yield (site_of(sweeps[0]) if sweeps else None), sweeps


def classify(moment: xr.DataArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell 'undetect' (no echo; xradar leaves it as a number) from 'nodata' (NaN already)."""
    values = moment.values
    missing = np.isnan(values)
    undetect = moment.attrs.get("_Undetect", moment.encoding.get("_Undetect"))
    if undetect is None:
        return np.zeros_like(missing), missing
    gain = float(moment.encoding.get("scale_factor", 1.0))
    silent = float(undetect) * gain + float(moment.encoding.get("add_offset", 0.0))
    return np.abs(values - silent) <= max(abs(gain) * 1e-3, abs(silent) * 1e-6), missing


def _datasets(file: Any) -> list[str]:
    """Names of the sweeps' groups, in the order of their numbers, which is xradar's."""
    names = [name for name in file if re.fullmatch(r"dataset\d+", name)]
    return sorted(names, key=lambda name: int(name[7:]))


def _time(date: str, time: str) -> np.datetime64:
    text = f"{date[:4]}-{date[4:6]}-{date[6:8]}T{time[:2]}:{time[2:4]}:{time[4:6]}"
    return np.datetime64(text, "s")


def _station(source: str) -> str:
    """Return the identifier of the radar in an ODIM source attribute.

    The WMO number first: files of one radar do not always carry its other names.
    """
    parts = dict(part.split(":", 1) for part in source.split(",") if ":" in part)
    for key in ("WMO", "NOD", "RAD", "WIGOS", "PLC", "ORG", "CMT"):
        if parts.get(key, "").strip("0 "):
            return parts[key]
    return source or "unknown"
