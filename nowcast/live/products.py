"""Further products of forecasts, and the removal of old forecasts and frames."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import xarray as xr

from daskdl.files import remove
from nowcast.cells.write import write_cells
from nowcast.forecasters.products import require_rasterio, write_cog, write_grib
from nowcast.live.rolling import start_of
from nowcast.plot.bare import write_pictures
from nowcast.radar.maps.grib import load_eccodes
from nowcast.rain import writer
from nowcast.rain.grid import Grid
from nowcast.rain.store import open_rain, write_zarr
from nowcast.web.basemap import follow

Name = Literal["cog", "grib", "pictures", "cells"]
#: Cells are tracked in at most these observed hours and frames before a forecast.
PAST, FRAMES = np.timedelta64(2, "h"), 24


class Product(NamedTuple):
    """A kind of file; its files are in a folder of its name, with the forecasts' names."""

    ending: str
    #: Called with a forecast, the rain store and a path.
    write: Callable[[xr.Dataset, xr.Dataset, Path], object]
    #: Raises an error that names the extra if it is not installed.
    require: Callable[[], object] = lambda: None


def write_tracked(forecast: xr.Dataset, rain: xr.Dataset, path: Path) -> None:
    """Write the cells of the observed past and of the forecast, as ``nowcast cells`` does."""
    start = forecast["forecast_reference_time"].values
    times = rain["time"].values
    seen = np.flatnonzero((times >= start - PAST) & (times <= start))[-FRAMES:]
    cells = follow(
        Grid.from_dataset(forecast, where=str(path)),
        np.concatenate([times[seen], forecast["time"].values]),
        rain["rain_rate"].isel(time=seen).values, forecast["rain_rate"].values,
    )  # fmt: skip
    write_cells(cells, path)


PRODUCTS: dict[str, Product] = {
    "cog": Product(".tif", lambda forecast, _, path: write_cog(forecast, path), require_rasterio),
    "grib": Product(
        ".grib2", lambda forecast, _, path: write_grib(forecast, path), load_eccodes
    ),
    "pictures": Product(".gif", lambda forecast, _, path: write_pictures(forecast, path)),
    "cells": Product(".geojson", write_tracked),
}  # fmt: skip


def bound_forecasts(out: Path, keep: np.timedelta64) -> None:
    """Remove the forecasts of a folder that start more than ``keep`` before the newest one."""
    paths = sorted((out / "forecasts").glob("*.nc"))
    for path in paths[:-1]:
        if start_of(path) < start_of(paths[-1]) - keep:
            for name in PRODUCTS:
                for product in (out / name).glob(f"{path.stem}*"):
                    remove(product)
            remove(path)


def keep_frames(store: Path, mask: np.ndarray) -> None:
    """Replace a store by one with some of its frames."""
    with writer.locked(store), open_rain(store) as rain:
        # With a new id, readers of the old store get an error that asks to open it again.
        fewer = rain.isel(time=np.flatnonzero(mask)).assign_attrs(id=uuid.uuid4().hex)
        encoding = writer.encoding_per_time(fewer)
        for name in encoding:
            fewer[name].load()  # Dask has a chunk per time, the store one for many
        write_zarr(fewer, store, encoding=encoding)
