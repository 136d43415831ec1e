"""A folder as ``nowcast watch`` makes it, with a small forecast."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
    """A forecast with probabilities: dry at the first lead, then 2 mm/h; a corner is missing."""
    rain = np.zeros((N_OUT, SIZE, SIZE), np.float32)
    rain[1:] = 2.0
    probability = np.stack([np.where(rain > 0, 0.8, 0.2), np.where(rain > 0, 0.3, 0.0)])
    for field in (rain, probability):
        field[..., :2, :2] = np.nan
    made = Forecast(rain, (0.1, 1.0), probability.astype(np.float32))
    return forecast_dataset(moving_rain(), index, made, "test")


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    (made / "forecasts").mkdir()
    write_zarr(moving_rain(), made / "rain.zarr")
    write_netcdf(a_forecast(), made / "forecasts" / "20200601T0150Z.nc")
    return made


@pytest.fixture
def folder(made, tmp_path):
    """A folder as ``nowcast watch`` makes it, without latest.json."""
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


@pytest.fixture
def areas(folder):
    """A GeoJSON file: the west of the grid, a place in its east, and an area far away."""

    def square(west, south, side):
        east, north = west + side, south + side
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        return {"type": "Polygon", "coordinates": [ring]}

    geometries = {
        "west": square(4.8, 49.95, 0.1),
        "town": {"type": "Point", "coordinates": [5.1, 50.0]},
        "away": square(9.0, 40.0, 0.1),
    }
    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry": geometry}
        for name, geometry in geometries.items()
    ]
    path = folder / "areas.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an ASGI application and yield its address."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def shown(folder):
    return Folder(folder)
