"""A folder as ``nowcast watch`` makes it, with a small forecast."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from nowcast.forecasters.dataset import forecast_dataset
from nowcast.forecasters.forecast import Forecast
from nowcast.rain.store import write_netcdf, write_zarr
from nowcast.web.folder import Folder
from tests.nowcast.stores import N_OUT, SIZE, moving_rain

LAT, LON = 50.0, 5.0


def a_forecast(index: int = 11) -> xr.Dataset:
    """Dry at the first lead, 2 mm/h then, with probabilities; a corner is missing."""
    rain = np.zeros((N_OUT, SIZE, SIZE), np.float32)
    rain[1:] = 2.0
    probability = np.stack([np.where(rain > 0, 0.8, 0.2), np.where(rain > 0, 0.3, 0.0)])
    for field in (rain, probability):
        field[..., :2, :2] = np.nan
    made = Forecast(rain, (0.1, 1.0), probability.astype(np.float32))
    return forecast_dataset(moving_rain(), index, made, "test")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as ``nowcast watch`` makes it, without latest.json."""
    (tmp_path / "forecasts").mkdir()
    write_zarr(moving_rain(), tmp_path / "rain.zarr")
    write_netcdf(a_forecast(), tmp_path / "forecasts" / "20200601T0150Z.nc")
    return tmp_path


@pytest.fixture
def shown(folder: Path) -> Folder:
    return Folder(folder)
