"""Tests of persistence."""

from __future__ import annotations

import numpy as np

from nowcast.forecasters import Persistence


def test_the_last_frame_stays_with_its_missing_pixels() -> None:
    rain = np.random.default_rng(0).gamma(1, size=(3, 5, 6)).astype(np.float32)
    rain[-1, 2, 3] = np.nan
    forecast = Persistence(4)(rain)
    np.testing.assert_array_equal(forecast, np.stack([rain[-1]] * 4))
