"""Forecasts of every method: shapes, bits, members, and writing them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import xarray as xr
from scipy.ndimage import gaussian_filter, maximum_filter

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.runtime.threads import thread_budget
from nowcast.forecasters import Forecast, Persistence, Sprog, Steps, file, forecaster, method_names
from nowcast.forecasters.file import open_forecast
from nowcast.forecasters.predict import predict, predict_to
from nowcast.forecasters.pysteps import pysteps_installed
from nowcast.lagrangian.advection import advect
from nowcast.lagrangian.motion import motion_field
from tests.nowcast.stores import moving_rain, translation

GRID = {"spacing_km": 1.0, "step_minutes": 5.0}
OWN = [name for name in method_names() if name != "model" and not name.startswith("pysteps")]
ALL = [
    *OWN,
    pytest.param(
        "pysteps:extrapolation",
        marks=pytest.mark.skipif(not pysteps_installed(), reason="pysteps is not installed"),
    ),
]


@pytest.fixture(params=ALL)
def method(request):
    return forecaster(request.param)


@pytest.mark.slow
def test_a_forecast_has_its_shapes_and_bounds(method):
    rain = translation(4, 1.0, -2.0, size=96)
    rain[:, 40:50, 40:50] = np.nan
    before = rain.copy()
    made = method.forecast(rain, 5, thresholds=(0.5, 2.0), **GRID)
    assert made.rain.shape == (5, 96, 96)
    assert made.rain.dtype == np.float32
    assert 0.75 < np.isfinite(made.rain).mean() < 1
    assert np.nanmin(made.rain) >= 0
    np.testing.assert_array_equal(rain, before)
    if made.probability is not None:
        assert made.thresholds == (0.5, 2.0)
        known = np.isfinite(made.rain)
        assert np.array_equal(np.isfinite(made.probability), np.stack([known, known]))
        assert (np.diff(made.probability[:, known], axis=0) <= 0).all()
        assert 0 <= np.nanmin(made.probability) <= np.nanmax(made.probability) <= 1


def test_a_method_can_be_pickled(method):
    assert pickle.loads(pickle.dumps(method)) == method


def test_senseless_arguments_are_refused(method):
    rain = translation(4, 1.0, -2.0, size=32)
    with pytest.raises(SettingsError, match="leads must be at least 1 frame, found 0"):
        method.forecast(rain, 0, **GRID)
    with pytest.raises(ShapeError, match=r"found \(32, 32\)"):
        method.forecast(rain[0], 1, **GRID)
    with pytest.raises(SettingsError, match="spacing_km must be positive, found 0"):
        method.forecast(rain, 1, spacing_km=0, step_minutes=5)


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("fill", [0.0, np.nan])
def test_dry_stays_dry_and_missing_stays_missing(name, fill):
    rain = np.full((3, 64, 72), fill, np.float32)
    made = forecaster(name).forecast(rain, 3, **GRID)
    np.testing.assert_array_equal(made.rain, np.full((3, 64, 72), fill, np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_the_threads_do_not_change_a_bit(name):
    rain = translation(3, 1.3, -2.2, size=200)
    made = []
    for threads in (1, 2, 3):
        with thread_budget(threads):
            made.append(forecaster(name).forecast(rain, 3, members=2, seed=7, **GRID))
    for other in made[1:]:
        np.testing.assert_array_equal(made[0].rain, other.rain)
        for part in ("probability", "members"):
            first, second = getattr(made[0], part), getattr(other, part)
            assert (first is None) == (second is None)
            if first is not None:
                np.testing.assert_array_equal(first, second)


GRID_STEPS = {"spacing_km": 1.0, "step_minutes": 10.0}


def showers(height: int, width: int) -> np.ndarray:
    """Three frames (time, y, x) of rain that changes in place."""
    rng = np.random.default_rng(0)
    stays = 20 * gaussian_filter(rng.normal(size=(height, width)), 4)
    frames = [stays + 4 * gaussian_filter(rng.normal(size=stays.shape), 3) for _ in range(3)]
    return np.maximum(np.stack(frames), 0).astype(np.float32)


def test_as_many_members_reach_a_threshold_as_the_probability_says():
    made = Steps().forecast(showers(96, 120), 2, members=20, **GRID_STEPS)
    assert made.members is not None
    assert made.probability is not None
    share = (made.members >= 1).mean(axis=0)
    wrong = share - made.probability[made.thresholds.index(1.0)]
    assert np.sqrt(np.nanmean(wrong**2)) < 0.04  # 0.046 for members with independent noise


def test_a_grid_of_few_pixels_has_members():
    made = Steps().forecast(showers(8, 8), 2, members=4, **GRID_STEPS)
    assert made.members is not None
    known = np.isfinite(made.rain)
    assert known.any()
    assert np.isfinite(made.members[:, known]).all()
    usual = Steps().forecast(showers(8, 8), 1, **GRID_STEPS).members
    assert usual is not None
    assert len(usual) == 20


@pytest.mark.parametrize("name", ["a.zarr", "a.nc"])
@pytest.mark.parametrize("forecaster", [Sprog(), Persistence()], ids=["sprog", "persistence"])
def test_leads_written_one_by_one_give_the_whole_forecast(name, forecaster, tmp_path, monkeypatch):
    monkeypatch.setattr(file, "SMALL", 0)
    rain = moving_rain()
    asked = {"thresholds": (1.0, 5.0), "members": 2}
    leads, time, missing = predict_to(tmp_path / name, forecaster, rain, **asked)
    assert not missing
    whole = predict(forecaster, rain, **asked)
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]
    with open_forecast(tmp_path / name) as written:
        assert leads == whole.sizes["lead_time"]
        assert time == rain["time"].values[-1]
        xr.testing.assert_equal(written.load().drop_vars("crs"), whole.drop_vars("crs"))
        assert {n: v.dims for n, v in written.variables.items()} == {
            n: v.dims for n, v in whole.variables.items()
        }
        assert written["rain_rate"].dims == ("lead_time", "y", "x")
        assert np.isfinite(written["rain_rate"].values).any()


def test_near_missing_data_no_rain_is_stronger_than_the_rain_around():
    rain = showers(192, 192)
    rain[:, :110, 60:] = np.nan
    made = Sprog().forecast(rain, 8, **GRID).rain[-1]
    motion = motion_field(rain[::2], ages=(2, 0), **GRID)  # ten minutes apart
    moved = np.nan_to_num(advect(rain[-1], motion, 8)[-1])
    assert np.nanmax(made - maximum_filter(moved, 27)) <= 0
    assert np.nanmax(made) > 0.5 * moved.max()


def test_quantiles_need_levels_between_0_and_1_and_probabilities():
    alone = Forecast(np.ones((1, 2, 2), np.float32), (1.0,))
    for levels in ((), (0.5, 1.0), (-0.1,)):
        with pytest.raises(SettingsError, match="levels between 0 and 1, found"):
            alone.quantiles(levels)
    with pytest.raises(SettingsError, match="with members or probabilities, found neither"):
        alone.quantiles((0.5,))
