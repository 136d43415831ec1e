"""``nowcast train`` and ``nowcast calibrate``."""

from __future__ import annotations

import json

import numpy as np
import pytest

from daskdl.console import run
from nowcast.cli import app
from nowcast.forecasters import Sprog, forecaster
from nowcast.forecasters.file import open_forecast
from nowcast.model.folder import load_model
from nowcast.model.moving.model import MovingModel
from tests.nowcast.model.test_train import write_store
from tests.nowcast.stores import translation

#: Settings of a small network of the fixed frame.
FIXED = (
    "frame=fixed", "n_in=2", "channels=[4]", "tile=32", "tile_stride=16", "fractions=[0.6, 0.2]",
)  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write_store(tmp_path_factory.mktemp("store") / "rain.zarr", translation(40, 0, 3, 48))


def train(store, out, epochs: str, *settings: str, options=()) -> int:
    assigned = [part for setting in settings for part in ("--set", setting)]
    command = ["train", str(store), "--out", str(out), "--lead", "20min", "--epochs", epochs]
    return run(app, [*command, "--workers", "1", "--no-progress", *assigned, *options])


@pytest.mark.slow
def test_the_command_writes_a_model_and_json_about_it(store, tmp_path, capsys):
    code = train(store, tmp_path / "m", "0.5", *FIXED, options=["--json"])
    output = capsys.readouterr()
    assert code == 0, output.err
    result = json.loads(output.out)
    assert result["settings"]["n_in"] == 2
    assert "training windows" in output.err
    assert load_model(tmp_path / "m").lead_minutes == 20


@pytest.mark.slow
def test_the_default_model_corrects_sprog(store, tmp_path, capsys):
    code = train(
        store, tmp_path / "m", "1", "starts=2", "draws=2", "cells=16", "fractions=[0.6, 0.2]",
        "shards=2",
    )  # fmt: skip
    output = capsys.readouterr()
    assert code == 0, output.err
    assert "The network is not shown to be better than sprog" in output.err
    assert "--method auto takes sprog." in output.err
    model = load_model(tmp_path / "m")
    assert isinstance(model, MovingModel)
    assert not (tmp_path / "m" / "training").exists()
    assert isinstance(forecaster("auto", tmp_path / "m"), Sprog)


def test_errors_are_reported_before_workers_start(store, tmp_path, capsys):
    nobody = ["--out", str(tmp_path / "m"), "--cluster", "tcp://127.0.0.1:9"]
    assert run(app, ["train", str(tmp_path / "none.zarr"), *nobody]) == 3
    assert run(app, ["train", str(store), *nobody, "--set", "epocs=3"]) == 2
    assert run(app, ["train", str(store), *nobody, "--lead", "soon"]) == 2
    assert run(app, ["train", str(store), *nobody, "--set", "channels=[4]"]) == 2
    *others, last = capsys.readouterr().err.strip().splitlines()
    assert "setting channels: expected one of the moving frame" in last
    assert len(others) == 3
    assert not (tmp_path / "m").exists()


def test_predict_takes_a_calibration(tmp_path, capsys):
    store = write_store(tmp_path / "rain.zarr", translation(20, 1, 2, size=64))
    file = str(tmp_path / "own.json")
    assert run(app, ["calibrate", str(store), "--out", file, "--starts", "3", "--lead", "20"]) == 0
    assert f"fitted to 3 forecasts written to {file}" in capsys.readouterr().err
    chances = []
    for name, options in (("a", []), ("b", ["--calibration", file])):
        out = str(tmp_path / f"{name}.zarr")
        assert run(app, ["predict", str(store), "--out", out, "--lead", "20", *options]) == 0
        chances.append(open_forecast(tmp_path / f"{name}.zarr")["exceedance_probability"].values)
    assert np.nanmax(np.abs(chances[0] - chances[1])) > 0.05
    assert run(app, ["predict", str(store), "--out", out, "--calibration", str(store)]) == 3
