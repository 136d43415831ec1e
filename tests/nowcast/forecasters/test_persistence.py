"""Tests of persistence."""

from __future__ import annotations

import numpy as np

from tests.nowcast.methods import persistence


def test_repeats_the_last_frame_with_what_is_missing_in_it() -> None:
    rain = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    rain[-1, 0, 0] = np.nan
    forecast = persistence(3)(rain)
    np.testing.assert_array_equal(forecast, np.stack([rain[-1]] * 3))
