"""Tests of ensembles: members stand for the probabilities, on grids of any size."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

from nowcast.forecasters import Steps

GRID = {"spacing_km": 1.0, "step_minutes": 10.0}


def showers(height: int, width: int) -> np.ndarray:
    """Three frames (time, y, x) of rain that stays, with changes."""
    rng = np.random.default_rng(0)
    stays = 20 * gaussian_filter(rng.normal(size=(height, width)), 4)
    frames = [stays + 4 * gaussian_filter(rng.normal(size=stays.shape), 3) for _ in range(3)]
    return np.maximum(np.stack(frames), 0).astype(np.float32)


def test_as_many_members_reach_a_threshold_as_the_probability_says() -> None:
    made = Steps().forecast(showers(96, 120), 2, members=20, **GRID)
    assert made.members is not None
    assert made.probability is not None
    share = (made.members >= 1).mean(axis=0)
    wrong = share - made.probability[made.thresholds.index(1.0)]
    assert np.sqrt(np.nanmean(wrong**2)) < 0.04  # 0.046 of members with independent noise


def test_a_grid_of_few_pixels_has_members() -> None:
    made = Steps().forecast(showers(8, 8), 2, members=4, **GRID)
    assert made.members is not None
    known = np.isfinite(made.rain)
    assert known.any()
    assert np.isfinite(made.members[:, known]).all()
