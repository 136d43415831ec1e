"""ODIM_H5 composites: rain rate, accumulation or reflectivity on a projected grid (object COMP).

As OPERA makes them (ODYSSEY until 2024, then CIRRUS for reflectivity and NIMBUS for rain), and the
national services of Europe. Rows run from north to south.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.attributes import count, number, text
from nowcast.radar.geographic import geographic_grid
from nowcast.radar.header import MOST_CELLS, Format, Header
from nowcast.radar.odim import datasets, quantity, read_time, read_values, station
from nowcast.radar.projection import in_metres
from nowcast.radar.sweep import REFLECTIVITY
from nowcast.rain.grid import Grid

RATE, ACCUMULATION = "RATE", "ACRR"
# Best first, where a file has several.
QUANTITIES = (RATE, ACCUMULATION, *REFLECTIVITY)


def read_header(path: Path, name: str) -> Header:
    """Return the header of the composite at ``path``; of accumulations the time is their end."""
    import h5py

    with h5py.File(path, "r") as file:
        dataset, data = _find(file)
        found = quantity(data, dataset)
        what = dataset["what"] if "what" in dataset else file["what"]
        time, accumulation = read_time(text(file["what"], "date"), text(file["what"], "time")), None
        if found == ACCUMULATION:
            start = read_time(text(what, "startdate"), text(what, "starttime"))
            time = read_time(text(what, "enddate"), text(what, "endtime"))
            if not time > start:
                raise DataError(
                    f"expected an accumulation that ends after {start}, found {time}"
                    "; mend the file or leave it out"
                )
            accumulation = time - start
        return Header(
            path=name,
            format=Format.ODIM_COMPOSITE,
            station=station(text(file["what"], "source")),
            times=(time,),
            grid=_grid(file["where"]),
            accumulation=accumulation,
            reflectivity=found not in (RATE, ACCUMULATION),
        )


def read_values_of(path: Path, header: Header, index: int) -> NDArray[np.float32]:
    """Return mm h-1, or dBZ, (ny, nx) with y and x increasing."""
    import h5py

    with h5py.File(path, "r") as file:
        dataset, data = _find(file)
        values = read_values(data, dataset, MOST_CELLS)
    if not header.reflectivity:
        values[np.isneginf(values)] = 0.0
        if header.accumulation is not None:
            values /= np.float32(header.accumulation / np.timedelta64(1, "h"))
    return np.ascontiguousarray(values[::-1])


def _find(file: Any) -> tuple[Any, Any]:
    """Return dataset and data of the quantity that is best as rain."""
    groups = [
        (file[key], file[key][inner])
        for key in datasets(file)
        for inner in datasets(file[key], "data")
        if "data" in file[key][inner]
    ]
    for wanted in QUANTITIES:
        for dataset, data in groups:
            if quantity(data, dataset) == wanted:
                return dataset, data
    found = ", ".join(quantity(data, dataset) or "?" for dataset, data in groups[:8])
    raise DataError(
        f"expected a composite of {', '.join(QUANTITIES[:4])} ..., found {found or 'no data'}"
        "; give composites of one of these"
    )


def _grid(where: Any) -> Grid:
    """Return the grid; corners are those of the outer cells, or their centres where these fit."""
    import pyproj

    projection = text(where, "projdef")
    nx, ny = count(where, "xsize", MOST_CELLS), count(where, "ysize", MOST_CELLS)
    dx, dy = number(where, "xscale"), number(where, "yscale")
    west, south = number(where, "LL_lon"), number(where, "LL_lat")
    crs = pyproj.CRS(projection)
    if crs.is_geographic:
        return geographic_grid(west + dx / 2, south + dy / 2, dx, dy, nx, ny)
    projection = in_metres(projection)
    project = pyproj.Proj(projection)
    x, y = project(west, south)
    corner = project(
        number(where, "UR_lon", float("nan")) if "UR_lon" in where.attrs else np.nan,
        number(where, "UR_lat", float("nan")) if "UR_lat" in where.attrs else np.nan,
    )
    of_centres = all(
        abs(end - start - (n - 1) * step) < abs(end - start - n * step)
        for start, end, n, step in ((x, corner[0], nx, dx), (y, corner[1], ny, dy))
    )
    half = 0.0 if of_centres else 0.5
    return Grid(crs=projection, x0=x + half * dx, y0=y + half * dy, dx=dx, dy=dy, nx=nx, ny=ny)
