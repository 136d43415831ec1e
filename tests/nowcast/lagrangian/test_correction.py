"""A corrected field: it reaches thresholds where that is likely, over areas that are expected."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.lagrangian.correction import redrawn
from nowcast.lagrangian.exceedance import THRESHOLDS

LEVELS = np.asarray(THRESHOLDS, np.float32)


def example(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a field of rain, and probabilities that fall off with how far below it a level is."""
    random = np.random.default_rng(seed)
    rain = np.exp(random.normal(-0.5, 1.5, (40, 50))).astype(np.float32)
    distance = np.log(rain) - np.log(LEVELS)[:, np.newaxis, np.newaxis]
    rain[rain < LEVELS[0]] = 0
    return rain, (1 / (1 + np.exp(-1.5 * distance))).astype(np.float32)


def areas(field: np.ndarray) -> np.ndarray:
    return np.array([np.count_nonzero(field >= level) for level in LEVELS])


def test_probabilities_in_the_order_of_the_field_leave_its_areas_and_its_heaviest_rain():
    rain, chances = example()
    field = redrawn(rain, chances, [1.0] * len(LEVELS), THRESHOLDS)
    np.testing.assert_array_equal(areas(field), areas(rain))
    np.testing.assert_allclose(field.max(), rain.max())
    known = rain >= LEVELS[0]
    np.testing.assert_allclose(np.log(field[known] / rain[known]), 0, atol=0.7)
    assert (field[~known] < LEVELS[0]).all()


def test_areas_change_by_the_factors():
    rain, chances = example()
    factors = [1.05, 1.2, 1.1, 1.0, 0.9, 0.5, 0.0]
    field = redrawn(rain, chances, factors, THRESHOLDS)
    wanted = np.round(areas(rain) * factors)
    # Of the highest rates, where none is wanted, those of the level below are kept.
    np.testing.assert_array_equal(areas(field)[:-1], wanted[:-1])


@pytest.mark.slow
def test_rain_goes_where_it_is_likely():
    rain, chances = example()
    field = redrawn(rain, chances[:, ::-1], [1.0] * len(LEVELS), THRESHOLDS)
    np.testing.assert_allclose(
        field, redrawn(rain[::-1], chances, [1.0] * len(LEVELS), THRESHOLDS)[::-1], atol=0.06
    )
    assert np.corrcoef(field.ravel(), rain[::-1].ravel())[0, 1] > 0.95


def test_a_threshold_that_no_rain_reached_is_not_reached():
    rain, chances = example()
    field = redrawn(np.minimum(rain, 4), chances, [5.0] * len(LEVELS), THRESHOLDS)
    assert field.max() == 4
    assert np.unique(field[field > LEVELS[3]]).size > 30


def test_missing_pixels_stay_missing():
    rain, chances = example()
    rain[3, 4] = np.nan
    chances[:, 3, 4] = np.nan
    field = redrawn(rain, chances, [1.0] * len(LEVELS), THRESHOLDS)
    assert np.isnan(field[3, 4])
    assert np.isfinite(np.delete(field.ravel(), 3 * 50 + 4)).all()


def test_where_no_rain_is_left_the_field_is_below_the_lowest_threshold():
    rain, chances = example()
    field = redrawn(rain, chances, [0.0] * len(LEVELS), THRESHOLDS)
    assert field.max() < LEVELS[0]
