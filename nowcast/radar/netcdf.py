"""CF files and stores as xarray's datasets, with units of time that UDUNITS reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from daskdl.errors import DataError
from nowcast.radar.units import HOURS

if TYPE_CHECKING:
    import xarray as xr

#: Group of the maps in files of NASA's Global Precipitation Measurement, such as IMERG.
GPM_GROUP = "Grid"
CALENDARS = ("standard", "gregorian", "proleptic_gregorian")
# The clock and a zone without a sign, "15:00:06 2:00" or "0:0:0 0:00".
# Words after the clock that mean UTC. xarray ignores others, "CEST", and takes "UTC+2" as -02:00.
WORDS = re.compile(r"[Tt\s\d:.+-]*?(Z|UTC?|GMT)?[\s0:+-]*", re.IGNORECASE)
#: Seconds that times in single precision may be apart; days since 1900 are five minutes apart.
COARSEST = 30.0
UNSIGNED_ZONE = re.compile(r"(\d:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?) +(\d{1,2}(?::?\d\d)?) *$")


def open_dataset(path: Path, group: str | None = None) -> xr.Dataset:
    """Open a CF file or store, or a group of it (in files of NASA's GPM the one with the maps).

    Units of time may have a zone without a sign: UDUNITS reads "2024-06-01 15:00:06 0:00", the form
    of all files of ARM, as UTC; xarray silently drops the hours before such a zone.
    """
    import xarray as xr

    options: dict[str, Any] = {"engine": engine_of(path)}
    if options["engine"] == "h5netcdf":
        with h5py.File(path, "r") as file:
            variables = any(isinstance(item, h5py.Dataset) for item in file.values())
            group = GPM_GROUP if GPM_GROUP in file and not variables else group
        options |= {"group": group, "phony_dims": "access"}
    dataset = xr.open_dataset(path, decode_cf=False, cache=False, **options)
    for variable in dataset.variables.values():
        units = variable.attrs.get("units")
        if isinstance(units, str) and " since " in units:
            _check_times(variable, *units.split(" since ", 1))
            variable.attrs["units"] = UNSIGNED_ZONE.sub(r"\1 +\2", units)
            # IMERG calls its days since 1980 Julian: between 1900 and 2100 they count alike.
            if variable.attrs.get("calendar") == "julian":
                variable.attrs["calendar"] = "standard"
            calendar = str(variable.attrs.get("calendar", "standard"))
            if calendar not in CALENDARS:
                raise DataError(
                    f"expected times of the calendar standard, found {calendar}, whose days are "
                    "others; convert the times, as by convert_calendar of xarray"
                )
    return xr.decode_cf(dataset, decode_timedelta=False)


def _check_times(variable: xr.Variable, unit: str, reference: str) -> None:
    """Refuse a zone in words, and numbers that are too coarse for a time."""
    if not WORDS.fullmatch(reference):
        raise DataError(
            f"expected times in UTC or with a zone such as +02:00, found 'since {reference}'"
            "; write the zone in hours and minutes"
        )
    if variable.dtype.kind == "f" and variable.size:
        seconds = 3600.0 * HOURS.get(unit.strip().lower().rstrip("s") or "s", 0.0)
        apart = seconds * float(np.nanmax(np.spacing(np.abs(variable.values)), initial=0.0))
        if apart > COARSEST:
            raise DataError(
                f"expected times to the second, found numbers of {variable.dtype} that step by "
                f"{apart:.0f} s; write them in double precision"
            )


def engine_of(path: Path) -> str:
    """Return the engine of xarray that reads a CF file or store.

    It is never netCDF4: its library ends the process when Python's collector closes a file in one
    thread while another thread reads. h5py has a lock for that.
    """
    if path.is_dir():
        return "zarr"
    with path.open("rb") as file:
        return "scipy" if file.read(3) == b"CDF" else "h5netcdf"
