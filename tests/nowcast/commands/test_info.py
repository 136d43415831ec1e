"""``nowcast info`` tells what was simulated, with its gap, and what was forecast from it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from nowcast.cli import app
from nowcast.commands.info import cf_faults
from nowcast.forecasters import forecaster
from nowcast.forecasters.predict import predict_to
from nowcast.rain.cf import rain_dataset
from nowcast.rain.grid import Grid
from nowcast.rain.store import open_rain, write_dataset
from nowcast.simulate import simulate
from nowcast.simulate.radar import Radar


def told(path):
    result = CliRunner().invoke(app, ["info", str(path), "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


@pytest.fixture
def store(tmp_path):
    grid = Grid.around(52.0, 5.0, size=(20, 20), spacing=1000.0)
    times = np.datetime64("2026-05-20T12:00", "ns") + 5 * np.arange(6) * np.timedelta64(1, "m")
    rain = np.zeros((5, 20, 20), np.float32)
    rain[:, :10] = 1.0
    rain[:, :, :5] = np.nan
    times = np.delete(times, 2)
    about = {"title": "made", "source": "test"}
    dataset = rain_dataset(grid, times, rain, attributes={}, global_attributes=about)
    write_dataset(dataset, tmp_path / "rain.zarr")
    return tmp_path / "rain.zarr"


def test_store_and_forecast(store, tmp_path):
    facts = told(store)
    assert facts["gaps"] == [["2026-05-20T12:05Z", "2026-05-20T12:15Z"]]
    assert (facts["frames"], facts["missing_frames"], facts["step_minutes"]) == (5, 1, 5)
    assert (facts["missing_share"], facts["wet_share"]) == (0.25, 0.5)
    with open_rain(store) as rain:
        predict_to(tmp_path / "f.nc", forecaster("persistence"), rain, "2026-05-20T12:25")
    facts = told(tmp_path / "f.nc")
    assert (facts["kind"], facts["start"]) == ("forecast", "2026-05-20T12:25Z")
    assert (len(facts["lead_minutes"]), facts["wet_share"]) == (12, 0.5)


def test_scans_with_a_gap_and_a_damaged_file(tmp_path):
    scans = simulate(tmp_path, hours=1, step_minutes=10, radar=Radar(gates=60, elevations=(0.5,)))
    scans[2].unlink()
    scans[4].write_bytes(scans[4].read_bytes()[:2000])
    facts = told(tmp_path)
    assert (facts["kind"], facts["files"], facts["formats"]) == ("scans", 5, {"ODIM_H5": 5 - 1})
    assert facts["gaps"] == [["2020-06-01T00:10Z", "2020-06-01T00:30Z"]]
    assert list(facts["unreadable"]) == [str(scans[4])]


def test_cf_faults_are_found(store):
    with open_rain(store) as rain:
        assert cf_faults(rain) == []
        spoilt = rain.drop_vars("crs").assign_attrs(Conventions="none")
        del spoilt["rain_rate"].attrs["units"]
        assert [fault.partition(":")[0] for fault in cf_faults(spoilt)] == [
            "Conventions", "rain_rate", "rain_rate",
        ]  # fmt: skip
