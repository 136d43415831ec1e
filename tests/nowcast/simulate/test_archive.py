"""Simulated archives: days with gaps between them, regimes, range and noise; the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.console import run
from daskdl.errors import SettingsError
from nowcast.cli import app
from nowcast.rain.simulated import is_simulated
from nowcast.rain.store import open_rain
from nowcast.simulate.archive import Days, simulate_archive
from nowcast.simulate.regime import REGIMES, draw_regime


def test_two_days_of_a_few_hours(tmp_path):
    simulate_archive(tmp_path / "a.zarr", Days(2, 2.0, 10, 32, 6000.0, seed=3))
    rain = open_rain(tmp_path / "a.zarr")
    assert is_simulated(rain)
    steps = np.diff(rain["time"].values) / np.timedelta64(1, "m")
    assert sorted(set(steps.tolist())) == [10, 1440 - 110]
    values = rain["rain_rate"].values
    assert values.shape == (24, 32, 32)
    assert np.isnan(values[:, 0, 0]).all()
    assert np.isfinite(values[:, 16, 16]).all()
    assert 0.005 < np.nanmean(values > 0.1) < 0.8
    simulate_archive(tmp_path / "b.zarr", Days(1, 2.0, 10, 32, 6000.0, seed=4))
    np.testing.assert_array_equal(open_rain(tmp_path / "b.zarr")["rain_rate"], values[12:])


def test_regimes_differ():
    drawn = [draw_regime(np.random.default_rng(seed)) for seed in range(60)]
    assert {regime.name for regime in drawn} == {regime.name for regime in REGIMES}
    assert np.ptp([regime.tempo for regime in drawn]) > 0.5


def test_the_command(tmp_path, capsys):
    out = tmp_path / "sim.zarr"
    assert run(app, ["simulate", "--out", str(out), "--hours", "1", "--size", "16"]) == 0
    assert f"6 frames of simulated rain written to {out}" in capsys.readouterr().err


def test_numbers_that_make_no_archive_are_refused(tmp_path):
    with pytest.raises(SettingsError, match="found 1 days of 30 h"):
        simulate_archive(tmp_path / "a.zarr", Days(hours=30.0))
