"""ODIM_H5 composites: rain rate, accumulation or reflectivity on a projected grid (object COMP).

They come from OPERA (ODYSSEY until 2024, then CIRRUS for reflectivity and NIMBUS for rain) and the
national services of Europe. Rows run from north to south.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pyproj
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.attributes import (
    REFLECTIVITY,
    check_measured,
    count,
    datasets,
    number,
    quantity,
    read_data,
    read_time,
    says,
    station,
    text,
    the_only,
)
from nowcast.radar.header import MOST_CELLS, Format, Header
from nowcast.radar.maps.projection import compare_corners, geographic_grid, in_metres
from nowcast.rain.grid import Grid

RATE, ACCUMULATION = "RATE", "ACRR"
#: Products that are no maps: cuts and panels with the height along a side, and profiles.
VERTICAL = ("RHI", "XSEC", "VP", "HSP", "VSP")
# How far the nominal time of a composite may lie outside of its scans' start and end.
OUTSIDE = np.timedelta64(30, "m")
# Best first, where a file has several.
QUANTITIES = (RATE, ACCUMULATION, *REFLECTIVITY)


def read_header(path: Path, name: str) -> Header:
    """Return the header of the composite at ``path``; an accumulation's time is its end."""
    with h5py.File(path, "r") as file:
        check_measured(file)
        dataset, data = _find(file)
        if says("malfunc", file, dataset):
            raise DataError("expected a composite that is sound, found how/malfunc True")
        name_of_quantity = quantity(data, dataset)
        attributes = dataset["what"] if "what" in dataset else file["what"]
        time, accumulation = read_time(text(file["what"], "date"), text(file["what"], "time")), None
        interval = _interval(attributes, time)
        # The dataset's own attributes, else the file's.
        where = {k: v for g in (file, dataset) if "where" in g for k, v in g["where"].attrs.items()}
        if name_of_quantity == ACCUMULATION:
            if interval is None or not interval[1] > interval[0]:
                start, end = interval or ("none", "none")
                raise DataError(f"expected an accumulation that ends after {start}, found {end}")
            time, accumulation = interval[1], interval[1] - interval[0]
        return Header(
            path=name,
            format=Format.ODIM_COMPOSITE,
            station=station(text(file["what"], "source")),
            times=(time,),
            grid=_grid(SimpleNamespace(name="/where", attrs=where)),
            accumulation=accumulation,
            reflectivity=name_of_quantity not in (RATE, ACCUMULATION),
        )


def read_values(path: Path, header: Header, index: int) -> NDArray[np.float32]:
    """Return mm h-1, or dBZ, (ny, nx) with y and x increasing."""
    with h5py.File(path, "r") as file:
        dataset, data = _find(file)
        values = read_data(data, dataset, MOST_CELLS)
    if not header.reflectivity:
        values[np.isneginf(values)] = 0.0
        if header.accumulation is not None:
            values /= np.float32(header.accumulation / np.timedelta64(1, "h"))
    return np.ascontiguousarray(values[::-1])


def _interval(group: Any, time: np.datetime64) -> tuple[np.datetime64, np.datetime64] | None:
    """Return start and end of a dataset, None if not stated, checked against ``time``."""
    keys = ("startdate", "starttime", "enddate", "endtime")
    if any(key not in group.attrs for key in keys):
        return None
    start, end = (
        read_time(text(group, f"{at}date"), text(group, f"{at}time")) for at in ("start", "end")
    )
    if end < start or not start - OUTSIDE <= time <= end + OUTSIDE:
        raise DataError(
            f"expected the file's time within what the dataset states, {start} to {end}, found "
            f"{time}"
        )
    return start, end


def _product(dataset: Any) -> str:
    return text(dataset["what"], "product") if "what" in dataset else ""


def _find(file: Any) -> tuple[Any, Any]:
    """Return dataset and data of the best quantity for rain."""
    groups = [
        (file[key], file[key][inner])
        for key in datasets(file)
        for inner in datasets(file[key], "data")
        if "data" in file[key][inner] and _product(file[key]) not in VERTICAL
    ]
    for wanted in QUANTITIES:
        if named := [data for dataset, data in groups if quantity(data, dataset) == wanted]:
            data = the_only(named, wanted)
            return data.parent, data
    quantities = ", ".join(quantity(data, dataset) or "?" for dataset, data in groups[:8])
    raise DataError(
        f"expected a composite of {', '.join(QUANTITIES[:4])} ..., found {quantities or 'no map'}"
        "; give composites of one of these"
    )


def _grid(where: Any) -> Grid:
    """Return the grid; corners are the outer cells' corners, or their centres if these fit."""
    projection = text(where, "projdef")
    nx, ny = count(where, "xsize", MOST_CELLS), count(where, "ysize", MOST_CELLS)
    dx, dy = number(where, "xscale"), number(where, "yscale")
    west, south = number(where, "LL_lon"), number(where, "LL_lat")
    north_east = [number(where, key, np.nan) for key in ("UR_lon", "UR_lat")]
    crs = pyproj.CRS(projection)
    if "ob_tran" in projection:
        raise DataError(
            f"expected a projection in metres or plain degrees, found a rotated pole, {projection}"
            "; put the composite on another grid first"
        )
    if crs.is_geographic:
        compare_corners((west, south), north_east, (nx, ny), (dx, dy), "degrees")
        return geographic_grid(west + dx / 2, south + dy / 2, dx, dy, nx, ny)
    if projection.lower().startswith("epsg"):
        with warnings.catch_warnings(action="ignore"):  # what a PROJ string loses is the name
            projection = crs.to_proj4()
    projection = in_metres(projection)
    project = pyproj.Proj(projection)
    x, y = project(west, south)
    corner = project(*north_east)
    compare_corners((x, y), corner, (nx, ny), (dx, dy), "m")
    of_centres = all(
        abs(end - start - (n - 1) * step) < abs(end - start - n * step)
        for start, end, n, step in ((x, corner[0], nx, dx), (y, corner[1], ny, dy))
    )
    half = 0.0 if of_centres else 0.5
    return Grid(crs=projection, x0=x + half * dx, y0=y + half * dy, dx=dx, dy=dy, nx=nx, ny=ny)
