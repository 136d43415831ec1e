"""Products beside forecasts: Cloud-optimised GeoTIFF, GRIB2, pictures with world files, cells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from nowcast.cells.write import write_cells
from nowcast.forecasters.cog import require_rasterio, write_cog
from nowcast.forecasters.grib import write_grib
from nowcast.plot.bare import write_pictures
from nowcast.radar.maps.grib import load_eccodes
from nowcast.rain.grid import Grid
from nowcast.web.cells import follow

if TYPE_CHECKING:
    import xarray as xr

Name = Literal["cog", "grib", "pictures", "cells"]
#: Observed hours and frames before a forecast at most in which cells are followed.
PAST, FRAMES = np.timedelta64(2, "h"), 24


class Product(NamedTuple):
    """A kind of file; those of a kind lie in a folder of its name, called as the forecasts are."""

    ending: str
    #: Given a forecast, the rain store and a path.
    write: Callable[[xr.Dataset, xr.Dataset, Path], object]
    #: Raises an error that names the extra, where it is missing.
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
