"""Forecasts written lead time by lead time are those that are written as a whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from nowcast.forecasters import Persistence, Sprog, writing
from nowcast.forecasters.file import open_forecast
from nowcast.forecasters.predict import predict, predict_to
from tests.nowcast.stores import moving_rain


@pytest.mark.parametrize("name", ["a.zarr", "a.nc"])
@pytest.mark.parametrize("forecaster", [Sprog(), Persistence()], ids=["sprog", "persistence"])
def test_leads_one_by_one(
    name: str, forecaster: Sprog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "SMALL", 0)
    rain = moving_rain()
    asked = {"thresholds": (1.0, 5.0), "members": 2}
    leads, time = predict_to(tmp_path / name, forecaster, rain, **asked)
    whole = predict(forecaster, rain, **asked)
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]
    with open_forecast(tmp_path / name) as written:
        assert leads == whole.sizes["lead_time"]
        assert time == rain["time"].values[-1]
        xr.testing.assert_equal(written.load().drop_vars("crs"), whole.drop_vars("crs"))
        assert written["rain_rate"].dims == ("lead_time", "y", "x")
        assert np.isfinite(written["rain_rate"].values).any()
