"""Regional ranks: each region of a field gets the rain rates of that region."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from nowcast.lagrangian.ranks import WINDOW_KM, match, ranks, regional_ranks

SIDE = 160


def smooth_field(seed: int = 0, shape: tuple[int, int] = (SIDE, SIDE)) -> np.ndarray:
    field = gaussian_filter(np.random.default_rng(seed).normal(size=shape), 4)
    return (field / field.std()).astype(np.float32)


def rain_like(field: np.ndarray) -> np.ndarray:
    """Return rain in a third of the pixels."""
    return np.where(field > 0.4, np.exp(1.2 * field), 0).astype(np.float32)


def matched(field: np.ndarray, rain: np.ndarray, spacing_km: float) -> np.ndarray:
    known = np.isfinite(field) & np.isfinite(rain)
    rank = regional_ranks(field, rain, spacing_km)
    return match(rank, np.where(known, rain, np.float32(np.nan)))


def test_one_window_is_the_match_of_the_whole():
    field, rain = smooth_field(1), rain_like(smooth_field(2))
    made = matched(field, rain, WINDOW_KM / 2 / SIDE)
    whole = match(ranks(field), rain)
    near = np.abs(made - whole) <= 0.02 + 0.02 * whole
    assert near.mean() > 0.99  # the other pixels are in the class where rain begins
    assert (np.diff(made.ravel()[np.argsort(field, axis=None)]) >= -1e-3 * made.max()).all()
    assert made.max() == pytest.approx(rain.max(), rel=0.02)
    assert (made == 0).mean() == pytest.approx((rain == 0).mean(), abs=0.005)


def test_both_ends_of_a_large_grid_keep_their_rates():
    field, rain = smooth_field(3, (SIDE, 8 * SIDE)), rain_like(smooth_field(4, (SIDE, 8 * SIDE)))
    rain[:, : 4 * SIDE] *= 0.05
    made = matched(field, rain, WINDOW_KM / SIDE)
    for part in (slice(0, 3 * SIDE), slice(5 * SIDE, None)):
        for level in (0.5, 0.9, 0.99):
            wet = made[:, part][made[:, part] > 0], rain[:, part][rain[:, part] > 0]
            one, other = (np.quantile(values, level) for values in wet)
            assert one == pytest.approx(other, rel=0.25)
    # A window reaches half its side beyond its middle; rain farther away matters little.
    near, less = slice(3 * SIDE, 4 * SIDE - SIDE // 2), rain.copy()
    less[:, 4 * SIDE :] = 0
    alone = matched(field, less, WINDOW_KM / SIDE)
    for level in (0.8, 0.9, 0.99):
        one, other = (np.quantile(values[:, near], level) for values in (made, alone))
        assert one == pytest.approx(other, rel=0.1)
    assert match(ranks(field), rain)[:, : 3 * SIDE].max() > 10 * made[:, : 3 * SIDE].max()


def test_windows_leave_no_lines():
    shape = (3 * SIDE, 3 * SIDE)
    rows, columns = np.meshgrid(*(np.linspace(0, 1, n) for n in shape), indexing="ij")
    field = (rows + columns).astype(np.float32)
    rain = rain_like(smooth_field(5, shape)) + np.float32(1)
    made = np.log(matched(field, rain, WINDOW_KM / SIDE))
    for axis in (0, 1):
        steps = np.abs(np.diff(made, n=2, axis=axis)).mean(1 - axis)
        for line in range(SIDE // 2, 3 * SIDE, SIDE // 2):
            assert steps[line - 2 : line + 1].max() < 5 * np.median(steps) + 1e-3


@pytest.mark.slow
def test_missing_pixels_stay_missing_and_change_nothing():
    field, rain = smooth_field(6), rain_like(smooth_field(7))
    less, seen = field.copy(), rain.copy()
    less[:40] = np.nan
    seen[:, :10] = np.nan
    made = matched(less, seen, 1.0)
    assert np.isnan(made[:40]).all()
    assert np.isnan(made[:, :10]).all()
    alone = matched(field[40:, 10:], rain[40:, 10:], 1.0)
    np.testing.assert_allclose(made[40:, 10:], alone, rtol=1e-4)


def test_dry_wet_and_missing_fields():
    field = smooth_field(8)
    assert (matched(field, np.zeros_like(field), 1.0) == 0).all()
    np.testing.assert_allclose(matched(field, np.full_like(field, 3), 1.0), 3, rtol=0.01)
    np.testing.assert_allclose(
        matched(np.zeros_like(field), np.full_like(field, 3), 1.0), 3, rtol=0.01
    )
    np.testing.assert_allclose(matched(field, np.full_like(field, 1e4), 1.0), 1e4)
    assert np.isnan(matched(np.full_like(field, np.nan), field, 1.0)).all()


@pytest.mark.parametrize("shape", [(1, 1), (3, 700), (333, 41)])
def test_any_shape(shape):
    field = np.random.default_rng(9).normal(size=shape).astype(np.float32)
    made = matched(field, np.exp(field), 2.0)
    assert made.shape == shape
    assert np.isfinite(made).all()
