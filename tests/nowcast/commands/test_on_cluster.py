"""verify, calibrate and predict on a cluster: the same numbers, and runs that continue."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from daskdl.cluster import connect
from daskdl.console import run
from nowcast.cli import app
from nowcast.forecasters import forecaster
from nowcast.forecasters.file import open_forecast
from nowcast.forecasters.predict import predict
from nowcast.forecasters.series import predict_each
from nowcast.forecasters.sprog import Steps
from nowcast.model.calibration import calibrate
from nowcast.rain.store import open_rain, write_zarr
from nowcast.verification import cases, verify
from tests.nowcast.stores import moving_rain


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("cluster") / "rain.zarr"
    large = xr.concat([moving_rain()] * 2, "x", data_vars="minimal", coords="minimal",
                      compat="override")  # fmt: skip
    large["x"] = np.arange(64) * 1000.0
    larger = xr.concat([large] * 2, "y", data_vars="minimal", coords="minimal", compat="override")
    larger["y"] = np.arange(64) * 1000.0
    write_zarr(larger, path)
    return path


@pytest.fixture(scope="module")
def client():
    with connect("local", workers=2) as client:
        yield client


METHODS = {"persistence": forecaster("persistence"), "steps": Steps()}


@pytest.mark.slow
def test_scores_have_the_same_bits(store, client, tmp_path, monkeypatch):
    monkeypatch.setattr(cases, "KEPT_TOGETHER", 2)
    with open_rain(store) as rain:
        settings = {"leads": 2, "members": 3, "thresholds": (1.0,), "scales": (5,)}
        alone = verify(rain["rain_rate"], METHODS, **settings)
        done = []

        def interrupted(number, _):
            done.append(number)
            if number == 7:
                raise KeyboardInterrupt

        folder = tmp_path / "kept"
        with pytest.raises(KeyboardInterrupt):
            verify(rain["rain_rate"], METHODS, **settings, client=client, kept=folder,
                   progress=interrupted)  # fmt: skip
        assert len(list(folder.glob("*.npz"))) == 3
        made = []
        monkeypatch.setattr(
            cases, "_scored", lambda *call, do=cases._scored: made.append(1) or do(*call)
        )
        again = verify(rain["rain_rate"], METHODS, **settings, kept=folder)
    assert len(made) == alone.attrs["n_cases"] - 6
    xr.testing.assert_identical(alone, again)
    assert not folder.exists()


@pytest.mark.slow
def test_calibration_is_the_same(store, client):
    alone, used = calibrate([store], starts=2, lead_minutes=10)
    assert (alone, used) == calibrate([store], starts=2, lead_minutes=10, client=client)


@pytest.mark.slow
def test_a_forecast_from_each_frame(store, client, tmp_path):
    first, last = np.datetime64("2020-06-01T00:00", "us"), np.datetime64("2020-06-01T01:00", "us")
    settings = {"lead_minutes": 20.0, "members": 2}
    made = predict_each(Steps(), store, tmp_path, first, last, every=2, client=client, **settings)
    assert made[:2] == (3, 0)
    assert list(made[2]) == ["2020-06-01T00:00"]  # no frame before it
    path = tmp_path / "20200601T0040Z.nc"
    with open_forecast(path) as written, open_rain(store) as rain:
        alone = predict(Steps(), rain, "2020-06-01T00:40", 20.0, members=2)
        xr.testing.assert_equal(written["rain_rate_members"], alone["rain_rate_members"])
    path.unlink()
    command = ["predict", str(store), "--out", str(tmp_path), "--from", "2020-06-01T00:20",
               "--to", "2020-06-01T01:00", "--every", "2", "--lead", "20min"]  # fmt: skip
    assert run(app, command) == 0
    assert path.exists()
    assert run(app, [*command[:2], "--out", str(tmp_path / "f.nc"), "--workers", "1"]) == 2
