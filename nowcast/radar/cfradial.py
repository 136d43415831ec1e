"""CfRadial 1 volumes (NCAR/EOL, CF conventions for radial data), netCDF-3 or netCDF-4."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar import odim
from nowcast.radar.header import Format, Header
from nowcast.radar.site import Site
from nowcast.radar.sweep import site_of
from nowcast.radar.tree import sweeps_of

if TYPE_CHECKING:
    import xarray as xr


def read_header(path: Path, name: str) -> Header:
    """Return the header of the volume at ``path``, called ``name`` in it."""
    import xarray as xr

    with xr.open_dataset(path, engine="netcdf4", decode_timedelta=False) as dataset:
        if "time" not in dataset.variables or not dataset["time"].size:
            raise DataError(f"{name}: expected the rays' times in a variable 'time', found none")
        first = dataset["time"].values.min()
        station = dataset.attrs.get("instrument_name") or dataset.attrs.get("site_name")
        return Header(
            path=name,
            format=Format.CFRADIAL,
            station=str(station or "unknown"),
            times=(first.astype("datetime64[ms]"),),
            site=site_of(dataset),
            single_sweep=dataset.sizes.get("sweep", 1) == 1,
        )


@contextmanager
def open_sweeps(path: Path, cuts: int) -> Iterator[tuple[Site | None, list[xr.Dataset]]]:
    """Give site and all sweeps of the volume."""
    import xradar

    with sweeps_of(xradar.io.open_cfradial1_datatree(path)) as opened:
        yield opened


def classify(moment: xr.DataArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell no echo where the file says so (``_Undetect``, as xradar exports it); fill is missing.

    Many CfRadial files write the fill value for no echo too; ingest has a setting for these.
    """
    return odim.classify(moment)
