"""Tests of what all forecasters share."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from daskdl.errors import SettingsError, ShapeError
from nowcast.forecasters import Extrapolation, Forecaster, Persistence, PystepsExtrapolation
from nowcast.forecasters.pysteps import pysteps_installed
from tests.nowcast.fields import translation

KINDS = [
    Persistence,
    Extrapolation,
    pytest.param(
        PystepsExtrapolation,
        marks=pytest.mark.skipif(not pysteps_installed(), reason="pysteps is not installed"),
    ),
]


@pytest.mark.parametrize("kind", KINDS)
class TestEveryForecaster:
    def test_keeps_the_contract(self, kind: Callable[[int], Forecaster]) -> None:
        rain = translation(4, 1.0, -2.0, size=96)
        before = rain.copy()
        forecast = kind(5)(rain)
        assert forecast.shape == (5, 96, 96)
        assert forecast.dtype == np.float32
        assert np.isfinite(forecast).mean() > 0.8
        assert np.nanmin(forecast) >= 0
        np.testing.assert_array_equal(rain, before)

    def test_goes_to_a_worker_and_back(self, kind: Callable[[int], Forecaster]) -> None:
        assert pickle.loads(pickle.dumps(kind(5))) == kind(5)

    def test_refuses_no_lead(self, kind: Callable[[int], Forecaster]) -> None:
        with pytest.raises(SettingsError, match="n_out must be at least 1 frame, found 0"):
            kind(0)

    def test_refuses_frames_without_time(self, kind: Callable[[int], Forecaster]) -> None:
        with pytest.raises(ShapeError, match=r"found \(32, 32\)"):
            kind(1)(np.zeros((32, 32), np.float32))
