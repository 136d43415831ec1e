"""Tests of probabilities from ranks."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.forecasters.forecast import THRESHOLDS
from nowcast.lagrangian.exceedance import (
    MOST_YES,
    SHIPPED,
    MarginTable,
    best_cut,
    check_table,
    exceedance,
    logit,
)
from nowcast.lagrangian.frames import to_decibel
from nowcast.lagrangian.ranks import match, ranks
from tests.nowcast.fields import storms

PLAIN = MarginTable(
    (1.0,), slope=((2.0, 0.5),), wet=((0.0, 0.0),), offset=((0.0, 0.0),), dry=((0.0, 0.0),)
)


def test_even_odds_lie_where_the_matched_field_reaches_the_threshold() -> None:
    rain, expected = storms((90, 90), 1), storms((90, 90), 2)
    expected += np.random.default_rng(0).normal(0, 1e-3, expected.shape).astype(np.float32)
    rank = ranks(expected)
    matched = match(rank, rain)
    p = exceedance(expected, rank, rain, (1.0,), 30, PLAIN, spacing_km=1.0)[0]
    agree = (p >= 0.5) == (matched >= 1)
    assert 0.05 < (matched >= 1).mean() < 0.5
    assert agree.mean() > 0.999


def test_a_longer_lead_is_less_sure() -> None:
    rain = storms((64, 64), 1)
    near, far = (
        exceedance(rain, ranks(rain), rain, (1.0,), m, PLAIN, spacing_km=1.0)[0] for m in (30, 60)
    )
    np.testing.assert_allclose(logit(far), logit(near) / 2, rtol=1e-3, atol=1e-3)


def test_rain_whose_motion_is_not_sure_is_less_sure() -> None:
    rain = storms((64, 64), 1)
    half = np.full_like(rain, 0.5)
    sure, unsure = (
        exceedance(rain, ranks(rain), rain, (1.0,), 30, PLAIN, spacing_km=1.0, sure=sure)[0]
        for sure in (None, half)
    )
    np.testing.assert_allclose(logit(unsure), logit(sure) / 2, rtol=1e-3, atol=1e-3)


def test_what_ships_is_monotone_and_falls_with_lead() -> None:
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


def test_between_the_tables_thresholds_numbers_are_between() -> None:
    low, middle, high = SHIPPED.at((1.0, 1.5, 2.0), 30)
    for a, b, c in zip(low, middle, high, strict=True):
        assert min(a, c) <= b <= max(a, c)


def test_the_best_cut_is_that_of_the_largest_expected_csi() -> None:
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


def test_yes_covers_hardly_more_than_is_expected_to_be_hit() -> None:
    flat = np.random.default_rng(0).uniform(0, 0.3, (60, 80)).astype(np.float32)
    assert (flat >= best_cut(flat)).sum() == pytest.approx(MOST_YES * flat.sum(), rel=0.01)


def test_where_no_rain_is_expected_the_best_cut_says_no() -> None:
    """The largest expected CSI would be that of yes everywhere, at which no forecaster aims."""
    hardly = np.linspace(0.001, 0.01, 64, dtype=np.float32).reshape(8, 8)
    assert best_cut(hardly) > hardly.max()
