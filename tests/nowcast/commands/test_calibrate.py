"""``nowcast calibrate``, and the commands that take what it wrote."""

from __future__ import annotations

import numpy as np

from daskdl.console import run
from nowcast.cli import app
from nowcast.forecasters.file import open_forecast
from tests.nowcast.fields import translation
from tests.nowcast.model.test_train import write_store


def test_predict_takes_the_file(tmp_path, capsys):
    store = write_store(tmp_path / "rain.zarr", translation(20, 1, 2, size=64))
    own = str(tmp_path / "own.json")
    assert run(app, ["calibrate", str(store), "--out", own, "--starts", "3", "--lead", "20"]) == 0
    assert f"fitted to 3 forecasts written to {own}" in capsys.readouterr().err
    chances = []
    for name, options in (("a", []), ("b", ["--calibration", own])):
        out = str(tmp_path / f"{name}.zarr")
        assert run(app, ["predict", str(store), "--out", out, "--lead", "20", *options]) == 0
        chances.append(open_forecast(tmp_path / f"{name}.zarr")["exceedance_probability"].values)
    assert np.nanmax(np.abs(chances[0] - chances[1])) > 0.05
    assert run(app, ["predict", str(store), "--out", out, "--calibration", str(store)]) == 3
