"""Tests of semi-Lagrangian advection."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import SettingsError, ShapeError
from nowcast.lagrangian import advection
from nowcast.lagrangian.advection import advect, carry, carry_all, departures
from tests.nowcast.fields import rotation, storms


def steady(dy: float, dx: float, shape: tuple[int, int]) -> np.ndarray:
    return np.broadcast_to(np.array([dy, dx], np.float32)[:, None, None], (2, *shape)).copy()


def test_no_motion_changes_nothing() -> None:
    rain = storms((50, 61), 1)
    np.testing.assert_array_equal(advect(rain, steady(0, 0, rain.shape), 3), np.stack([rain] * 3))


def test_whole_pixels_move_exactly_and_outside_is_missing() -> None:
    rain = storms((50, 61), 1)
    forecast = advect(rain, steady(2, -3, rain.shape), 4)
    for k, frame in enumerate(forecast, start=1):
        np.testing.assert_allclose(
            frame[2 * k :, : -3 * k], rain[: -2 * k, 3 * k :], rtol=1e-4, atol=1e-4
        )
        assert np.isnan(frame[: 2 * k]).all()
        assert np.isnan(frame[:, -3 * k :]).all()


def test_rotation_returns_to_where_the_rain_turns_to() -> None:
    degrees, n = 3.0, 10
    truth = rotation(n + 1, degrees, seed=4)
    y, x = np.mgrid[:160, :160] - 79.5
    motion = (np.radians(degrees) * np.stack([x, -y])).astype(np.float32)
    forecast = advect(truth[0], motion, n)
    inner = np.hypot(y, x) < 70
    for k in (1, n):
        # Both were interpolated linearly from the same field, once.
        error = np.abs(forecast[k - 1] - truth[k])[inner].mean()
        assert error < 0.1 * truth[k][inner].mean()


def test_coarse_paths_agree_with_those_of_every_pixel(monkeypatch) -> None:
    rain = storms((90, 75), 2)
    y, x = np.mgrid[:90, :75]
    motion = np.stack([2 + np.sin(x / 20), 1 + np.cos(y / 20)]).astype(np.float32)
    coarse = advect(rain, motion, 6)
    monkeypatch.setattr(advection, "COARSENING", 1)
    fine = advect(rain, motion, 6)
    both = np.isfinite(coarse) & np.isfinite(fine)
    assert both.mean() > 0.98 * np.isfinite(fine).mean()
    assert np.abs(coarse - fine)[both].max() < 0.02 * rain.max()


def test_missing_moves_along_and_stays_apart_from_dry() -> None:
    rain = np.zeros((40, 40), np.float32)
    rain[10, 10] = np.nan
    forecast = advect(rain, steady(1, 2, rain.shape), 2)
    assert np.isnan(forecast[1, 12, 14])
    inside = forecast[1, 2:, 4:]
    assert 1 <= np.isnan(inside).sum() <= 4
    assert (inside[np.isfinite(inside)] == 0).all()


def test_motion_of_another_grid_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"found \(20, 30\) and \(2, 30, 20\)"):
        advect(np.zeros((20, 30), np.float32), np.zeros((2, 30, 20), np.float32), 1)


def test_no_lead_is_refused() -> None:
    with pytest.raises(SettingsError, match="leads must be at least 1, found 0"):
        advect(np.zeros((9, 9), np.float32), np.zeros((2, 9, 9), np.float32), 0)


def test_fields_carried_together_are_those_carried_alone() -> None:
    fields = np.random.default_rng(0).standard_normal((3, 50, 61), np.float32)
    y, x = np.mgrid[:50, :61]
    motion = np.stack([2 + np.sin(x / 20), 1 + np.cos(y / 20)]).astype(np.float32)
    (*_, points) = departures(motion, 4)
    together = carry_all(fields, points)
    for one, alone in zip(together, fields, strict=True):
        np.testing.assert_allclose(one, carry(alone, points), atol=6e-3)


def test_the_nearest_pixel_keeps_rates_and_missing_pixels() -> None:
    field = np.random.default_rng(1).random((40, 50), np.float32)
    field[10, 10] = np.nan
    motion = np.stack([np.full(field.shape, 1.4), np.full(field.shape, -2.3)]).astype(np.float32)
    (points,) = departures(motion, 1)
    made = carry(field, points, nearest=True)
    np.testing.assert_array_equal(made[2:38, :47], field[1:37, 2:49])
    assert np.isnan(made[:1]).all()
