"""Forecasts as Cloud-optimised GeoTIFF: the values, in their place, as other programs read them."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.forecasters import forecaster
from nowcast.forecasters.predict import predict
from nowcast.forecasters.products import write_cog
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
