"""The demo, on fewer hours than it has by default: everything it promises is there and right."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nowcast.commands import demo
from nowcast.forecast import open_forecast
from nowcast.model import NowcastModel
from nowcast.store import open_rain

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("demo")
    demo.run(out, seed=0, cluster="local", workers=2, hours=14)
    return out


def test_all_files_are_there_and_can_be_opened(made):
    rain = open_rain(made / "rain.zarr")
    assert rain.sizes["time"] == 84
    assert float(rain["rain_rate"].max()) > 5
    model = NowcastModel.load(made / "model")
    assert not (made / "model" / "training").exists()
    forecast = open_forecast(made / "forecast.zarr")
    assert forecast.sizes["lead_time"] == model.n_out == 6
    with Image.open(made / "forecast.gif") as animation:
        assert animation.n_frames >= 6
    with Image.open(made / "verify.png") as picture:
        assert min(picture.size) > 300


def test_what_is_simulated_is_called_so(made):
    assert "simulated" in open_rain(made / "rain.zarr").attrs["title"].lower()
    assert "simulated" in open_forecast(made / "forecast.zarr").attrs["source"].lower()


def test_the_model_beats_persistence_where_the_extrapolation_does(made):
    scores = json.loads((made / "verify.json").read_text())["forecasters"]
    csi = {
        name: scores[name]["30"]["thresholds"]["1"]["csi"]
        for name in ("model", "persistence", "extrapolation")
    }
    assert csi["extrapolation"] > csi["persistence"]
    assert csi["model"] > csi["persistence"]


def test_the_forecast_starts_in_the_part_that_was_not_trained_on(made):
    model, forecast = NowcastModel.load(made / "model"), open_forecast(made / "forecast.zarr")
    reference = forecast["forecast_reference_time"].values
    assert model.split.test[0] < reference < model.split.test[1]
    assert np.isfinite(forecast["rain_rate"].values).any()
