"""The demo, on fewer hours than it has by default: everything it promises is there and right."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from nowcast.commands import demo
from nowcast.forecasters.file import open_forecast
from nowcast.model.folder import load_model
from nowcast.rain.store import open_rain

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.long
def test_all_that_it_promises_is_there_and_right(tmp_path):
    """One test: its processes are not to be started by each of those that run tests."""
    made = tmp_path / "demo"
    demo.demo(made, seed=0, cluster="local", workers=2, hours=14)

    rain = open_rain(made / "rain.zarr")
    assert rain.sizes["time"] == 84
    assert float(rain["rain_rate"].max()) > 5
    model = load_model(made / "model")
    assert not (made / "model" / "training").exists()
    forecast = open_forecast(made / "forecast.zarr")
    assert forecast.sizes["lead_time"] == model.lead_minutes / 10 == 6
    with Image.open(made / "forecast.gif") as animation:
        assert animation.n_frames >= 6
    with Image.open(made / "verify.png") as picture:
        assert min(picture.size) > 300

    # What is simulated is called so.
    assert "simulated" in rain.attrs["title"].lower()
    assert "simulated" in forecast.attrs["source"].lower()

    # The model beats persistence where the extrapolation does.
    scores = json.loads((made / "verify.json").read_text())["forecasters"]
    csi = {
        name: scores[name]["30"]["thresholds"]["1"]["csi"]
        for name in ("model", "persistence", "extrapolation")
    }
    assert csi["extrapolation"] > csi["persistence"]
    assert csi["model"] > csi["persistence"]

    # The forecast starts in the part that was not trained on.
    reference = forecast["forecast_reference_time"].values
    assert model.split.test[0].first < reference < model.split.test[0].last
    assert np.isfinite(forecast["rain_rate"].values).any()
