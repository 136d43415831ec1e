"""Probabilities from ranks, and the field redrawn from corrected probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.lagrangian.correction import redrawn
from nowcast.lagrangian.exceedance import (
    MOST_YES,
    SHIPPED,
    THRESHOLDS,
    MarginTable,
    best_cut,
    check_table,
    exceedance,
    logit,
)
from nowcast.lagrangian.frames import to_decibel
from nowcast.lagrangian.ranks import match, ranks
from tests.nowcast.stores import storms

PLAIN = MarginTable(
    (1.0,), slope=((2.0, 0.5),), wet=((0.0, 0.0),), offset=((0.0, 0.0),), dry=((0.0, 0.0),)
)


def test_even_odds_lie_where_the_matched_field_reaches_the_threshold():
    rain, expected = storms((90, 90), 1), storms((90, 90), 2)
    expected += np.random.default_rng(0).normal(0, 1e-3, expected.shape).astype(np.float32)
    rank = ranks(expected)
    matched = match(rank, rain)
    p = exceedance(expected, rank, rain, (1.0,), 30, PLAIN, spacing_km=1.0)[0]
    agree = (p >= 0.5) == (matched >= 1)
    assert 0.05 < (matched >= 1).mean() < 0.5
    assert agree.mean() > 0.999


def test_a_longer_lead_is_less_sure():
    rain = storms((64, 64), 1)
    near, far = (
        exceedance(rain, ranks(rain), rain, (1.0,), m, PLAIN, spacing_km=1.0)[0] for m in (30, 60)
    )
    np.testing.assert_allclose(logit(far), logit(near) / 2, rtol=1e-3, atol=1e-3)


def test_rain_of_uncertain_motion_is_less_sure():
    rain = storms((64, 64), 1)
    half = np.full_like(rain, 0.5)
    sure, unsure = (
        exceedance(rain, ranks(rain), rain, (1.0,), 30, PLAIN, spacing_km=1.0, sure=sure)[0]
        for sure in (None, half)
    )
    np.testing.assert_allclose(logit(unsure), logit(sure) / 2, rtol=1e-3, atol=1e-3)


def test_the_shipped_table_is_monotone_and_falls_with_lead():
    check_table(SHIPPED)
    assert SHIPPED.thresholds == THRESHOLDS
    rain = storms((80, 80), 3)
    rain[:10] = np.nan
    rank = ranks(rain)
    sharpness = []
    for minutes in (5, 15, 30, 60, 120, 300):
        p = exceedance(
            to_decibel(rain),
            rank,
            rain,
            (0.1, 0.3, 1.0, 3.0, 50.0),
            minutes,
            SHIPPED,
            spacing_km=1.0,
        )
        assert np.isnan(p[:, :10]).all()
        assert (np.diff(p[:, 10:], axis=0) <= 0).all()
        assert (p[:, 10:] >= 0).all()
        assert (p[:, 10:] <= 1).all()
        sharpness.append(float(np.std(p[2, 10:])))
    assert (np.diff(sharpness[:-1]) < 0).all()
    assert sharpness[-1] == sharpness[-2] > 0


def test_numbers_between_thresholds_of_the_table_are_interpolated():
    low, middle, high = SHIPPED.at((1.0, 1.5, 2.0), 30)
    for a, b, c in zip(low, middle, high, strict=True):
        assert min(a, c) <= b <= max(a, c)


def test_the_best_cut_has_the_largest_expected_csi():
    p = np.random.default_rng(0).beta(0.2, 0.4, (40, 50)).astype(np.float32)
    p[0] = np.nan
    values = p[1:].ravel().astype(float)
    csi = [
        values[values >= c].sum() / ((values >= c).sum() + values[values < c].sum())
        for c in np.sort(values)
    ]
    cut = best_cut(p)
    assert cut == pytest.approx(np.sort(values)[np.argmax(csi)], abs=0.02)
    yes = values >= cut
    assert values[yes].sum() / (yes.sum() + values[~yes].sum()) == pytest.approx(max(csi), abs=1e-4)
    assert best_cut(np.full((3, 3), 0.3, np.float32)) == pytest.approx(0.3)
    assert best_cut(np.zeros((3, 3), np.float32)) == 1


def test_yes_covers_little_more_than_the_expected_area():
    flat = np.random.default_rng(0).uniform(0, 0.3, (60, 80)).astype(np.float32)
    assert (flat >= best_cut(flat)).sum() == pytest.approx(MOST_YES * flat.sum(), rel=0.01)


def test_where_no_rain_is_expected_the_best_cut_says_no():
    """Yes everywhere would have the largest expected CSI, but no forecaster wants that."""
    hardly = np.linspace(0.001, 0.01, 64, dtype=np.float32).reshape(8, 8)
    assert best_cut(hardly) > hardly.max()


LEVELS = np.asarray(THRESHOLDS, np.float32)


def example(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a field of rain, and probabilities that fall with log(level / rain)."""
    random = np.random.default_rng(seed)
    rain = np.exp(random.normal(-0.5, 1.5, (40, 50))).astype(np.float32)
    distance = np.log(rain) - np.log(LEVELS)[:, np.newaxis, np.newaxis]
    rain[rain < LEVELS[0]] = 0
    return rain, (1 / (1 + np.exp(-1.5 * distance))).astype(np.float32)


def areas(field: np.ndarray) -> np.ndarray:
    return np.array([np.count_nonzero(field >= level) for level in LEVELS])


def test_probabilities_in_the_order_of_the_field_keep_its_areas_and_heaviest_rain():
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
    # The last level, of factor 0, is left out: rates above the level before it stay.
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
