"""The demo, on fewer hours than by default: every file that it promises; and ``nowcast ingest``."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from daskdl.console import run
from nowcast.cli import app
from nowcast.commands import demo
from nowcast.forecasters.file import open_forecast
from nowcast.model.folder import load_model
from nowcast.rain.store import open_rain
from nowcast.simulate import simulate


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.long
def test_all_promised_files_are_there_and_right(tmp_path):
    """One test, lest every process that runs tests starts workers for the demo."""
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

    # Simulated data are named as such.
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

    # The forecast starts in the test part.
    reference = forecast["forecast_reference_time"].values
    assert model.split.test[0].first < reference < model.split.test[0].last
    assert np.isfinite(forecast["rain_rate"].values).any()


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scans")
    simulate(folder, hours=0.5)
    return folder


def ingest(*arguments: object) -> int:
    return run(app, ["ingest", *map(str, arguments), "--size", "40", "--workers", "1"])


@pytest.mark.slow
def test_a_second_run_writes_nothing_and_json_goes_to_stdout(scans, tmp_path, capsys):
    out = tmp_path / "rain.zarr"
    assert ingest(scans, "--out", out) == 0
    assert "3 scans written" in capsys.readouterr().err
    assert ingest(scans, "--out", out, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["written"], report["existing"], report["failed"]) == (0, 3, [])
    assert open_rain(out).sizes == {"time": 3, "y": 40, "x": 40}


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_ingested(scans, tmp_path, capsys):
    bad = tmp_path / "bad.h5"
    bad.write_text("not HDF5 at all")
    assert ingest(scans, bad, "--out", tmp_path / "rain.zarr") == 3
    err = capsys.readouterr().err
    assert "bad.h5" in err
    assert "3 scans written" in err
    assert open_rain(tmp_path / "rain.zarr").sizes["time"] == 3


@pytest.mark.slow
def test_nothing_to_read_is_one_sentence_and_nothing_is_written(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert ingest(tmp_path / "empty", "--out", tmp_path / "rain.zarr") == 3
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not (tmp_path / "rain.zarr").exists()


def test_a_setting_out_of_range_is_a_usage_error(scans, tmp_path, capsys):
    assert ingest(scans, "--out", tmp_path / "rain.zarr", "--zr", "nonsense") == 2
    assert "nonsense" in capsys.readouterr().err
