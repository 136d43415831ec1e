"""Tests of what all forecasters share."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.runtime.threads import thread_budget
from nowcast.forecasters import Forecaster, forecaster, method_names
from nowcast.forecasters.pysteps import pysteps_installed
from tests.nowcast.fields import translation

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
def method(request: pytest.FixtureRequest) -> Forecaster:
    return forecaster(request.param)


@pytest.mark.slow
def test_keeps_the_contract(method: Forecaster) -> None:
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


def test_goes_to_a_worker_and_back(method: Forecaster) -> None:
    assert pickle.loads(pickle.dumps(method)) == method


def test_refuses_what_makes_no_sense(method: Forecaster) -> None:
    rain = translation(4, 1.0, -2.0, size=32)
    with pytest.raises(SettingsError, match="leads must be at least 1 frame, found 0"):
        method.forecast(rain, 0, **GRID)
    with pytest.raises(ShapeError, match=r"found \(32, 32\)"):
        method.forecast(rain[0], 1, **GRID)
    with pytest.raises(SettingsError, match="spacing_km must be positive, found 0"):
        method.forecast(rain, 1, spacing_km=0, step_minutes=5)


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("fill", [0.0, np.nan])
def test_dry_stays_dry_and_missing_stays_missing(name: str, fill: float) -> None:
    rain = np.full((3, 64, 72), fill, np.float32)
    made = forecaster(name).forecast(rain, 3, **GRID)
    np.testing.assert_array_equal(made.rain, np.full((3, 64, 72), fill, np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_the_threads_do_not_change_a_bit(name: str) -> None:
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
