"""Forecasts as Cloud-optimised GeoTIFF: the values, in their place, as other programs read them."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.console import run
from nowcast.cli import app
from nowcast.forecasters import forecaster
from nowcast.forecasters.cog import write_cog
from nowcast.forecasters.predict import predict
from nowcast.rain.store import write_zarr
from tests.nowcast.stores import moving_rain

rasterio = pytest.importorskip("rasterio")


def test_values_and_places(tmp_path):
    forecast = predict(forecaster("sprog"), moving_rain(), lead_minutes=30)
    files = write_cog(forecast, tmp_path / "f.tif")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in files)
    for path, values in (
        ("f.tif", forecast["rain_rate"]),
        ("f_probability_1mmh.tif", forecast["exceedance_probability"].sel(threshold=1.0)),
    ):
        with rasterio.open(tmp_path / path) as file:
            assert file.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
            assert file.descriptions[0] == "+10 min, 2020-06-01T04:00Z"
            assert file.crs.to_dict()["proj"] == "aeqd"
            y, x = float(forecast["y"][20]), float(forecast["x"][5])
            row = int((file.transform.f - y) // -file.transform.e)
            column = int((x - file.transform.c) // file.transform.a)
            np.testing.assert_array_equal(file.read()[:, row, column], values.values[:, 20, 5])
            np.testing.assert_array_equal(file.read(2)[::-1], values.values[1])


def test_predict_writes_it(tmp_path):
    write_zarr(moving_rain(), tmp_path / "rain.zarr")
    out = tmp_path / "new" / "f.tif"
    for _ in range(2):  # over the first
        assert run(app, ["predict", str(tmp_path / "rain.zarr"), "--out", str(out)]) == 0
    assert len(list(out.parent.iterdir())) == 8
