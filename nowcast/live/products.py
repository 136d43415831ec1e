"""Products that a watch writes beside its forecasts: Cloud-optimised GeoTIFF, GRIB2, cells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from nowcast.cells import track_cells
from nowcast.cells.write import write_cells
from nowcast.forecasters.cog import require_rasterio, write_cog
from nowcast.forecasters.grib import write_grib
from nowcast.radar.maps.grib import load_eccodes
from nowcast.rain.cf import rain_dataset
from nowcast.rain.grid import Grid

if TYPE_CHECKING:
    import xarray as xr

Name = Literal["cog", "grib", "cells"]
#: Observed hours and frames before a forecast at most in which cells are followed.
PAST, FRAMES = np.timedelta64(2, "h"), 24


class Product(NamedTuple):
    """A kind of file; those of a kind lie in a folder of its name, called as the forecasts are.

    Parameters
    ----------
    ending : str
    write : callable
        Given a forecast, the rain store and a path.
    require : callable
        Raises an error that names the extra, where it is missing.
    """

    ending: str
    write: Callable[[xr.Dataset, xr.Dataset, Path], object]
    require: Callable[[], object] = lambda: None


def write_tracked(forecast: xr.Dataset, rain: xr.Dataset, path: Path) -> None:
    """Write the cells of the observed past and of the forecast, as ``nowcast cells`` does."""
    start = forecast["forecast_reference_time"].values
    times = rain["time"].values
    seen = np.flatnonzero((times >= start - PAST) & (times <= start))[-FRAMES:]
    fields = np.concatenate(
        [rain["rain_rate"].isel(time=seen).values, forecast["rain_rate"].values]
    ).astype(np.float32)
    described = {name: str(forecast.attrs.get(name, "")) for name in ("title", "source")}
    write_cells(
        track_cells(
            rain_dataset(
                Grid.from_dataset(forecast, where=str(path)),
                np.concatenate([times[seen], forecast["time"].values]),
                fields,
                attributes={},
                global_attributes=described,
            )
        ),
        path,
    )


PRODUCTS: dict[str, Product] = {
    "cog": Product(".tif", lambda forecast, _, path: write_cog(forecast, path), require_rasterio),
    "grib": Product(
        ".grib2", lambda forecast, _, path: write_grib(forecast, path), load_eccodes
    ),
    "cells": Product(".geojson", write_tracked),
}  # fmt: skip
