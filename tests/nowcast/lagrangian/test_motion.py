"""The motion field, and fields moved along it."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import ShapeError
from nowcast.lagrangian import advection
from nowcast.lagrangian.advection import advect, carry, carry_all, departures
from nowcast.lagrangian.cascade import Cascade, arrivals
from nowcast.lagrangian.motion import SPREAD, motion_and_error, motion_field
from tests.nowcast.stores import rotation, storms, translation


@pytest.mark.parametrize(("dy", "dx"), [(3.0, -2.0), (-1.5, 0.7), (0.0, 6.0)])
def test_translation_is_found_within_ten_per_cent(dy, dx):
    motion = motion_field(translation(3, dy, dx))
    assert motion.shape == (2, 160, 160)
    assert motion.dtype == np.float32
    error = np.hypot(motion[0] - dy, motion[1] - dx)
    assert error.max() < 0.1 * np.hypot(dy, dx)


def test_rotation_is_found_within_ten_per_cent_where_it_rains():
    degrees = 2.0
    frames = rotation(3, degrees)
    motion = motion_field(frames)
    y, x = np.mgrid[:160, :160] - 79.5
    rain = (np.hypot(y, x) < 70) & (frames[-1] > 0.1)
    places = np.stack([np.ones(rain.sum()), y[rain], x[rain]], axis=1)
    (_, stretch_y, turn_y), (_, turn_x, stretch_x) = (
        np.linalg.lstsq(places, part[rain])[0] / np.radians(degrees) for part in motion
    )
    assert turn_y == pytest.approx(1, abs=0.1)
    assert turn_x == pytest.approx(-1, abs=0.1)
    assert abs(stretch_y) < 0.1
    assert abs(stretch_x) < 0.1


def test_missing_areas_neither_spread_nor_stop_the_rain():
    frames = translation(3, 2.0, -3.0)
    frames[:, :50] = np.nan
    frames[1, 90:100, 20:60] = np.nan
    motion = motion_field(frames)
    assert np.isfinite(motion).all()
    assert np.hypot(motion[0] - 2, motion[1] + 3).max() < 0.1 * np.hypot(2, 3)


def test_a_missing_frame_leaves_the_other_pairs():
    frames = translation(4, 2.0, -3.0)
    frames[-3] = np.nan
    motion = motion_field(frames)
    assert np.hypot(motion[0] - 2, motion[1] + 3).max() < 0.1 * np.hypot(2, 3)


@pytest.mark.parametrize("ages", [(7.5, 3, 0.5), (4, 0), (20, 10, 2.5)])
def test_frames_at_any_times_show_the_same_motion_per_step(ages):
    frames = translation(41, 0.6, -0.8)
    chosen = np.stack([frames[round(2 * (20 - age))] for age in ages])
    motion = motion_field(chosen, ages=ages)
    assert np.hypot(motion[0] - 1.2, motion[1] + 1.6).max() < 0.2


def test_dry_area_takes_the_motion_of_the_rain_around_it():
    frames = translation(3, 2.0, 2.0)
    frames[:, :, 60:] = 0
    motion = motion_field(frames)
    far = motion[:, :, 120:]
    assert np.abs(far - 2).max() < 0.6


@pytest.mark.parametrize("value", [0.0, 0.05, 4.0, np.nan])
def test_frames_without_features_have_no_motion(value):
    frames = np.full((3, 64, 80), value, np.float32)
    np.testing.assert_array_equal(motion_field(frames), np.zeros((2, 64, 80), np.float32))


def test_grids_that_no_block_divides():
    frames = translation(2, 1.0, 1.0)[:, :137, :91]
    motion = motion_field(frames)
    assert motion.shape == (2, 137, 91)
    assert np.abs(motion - 1).max() < 0.2


@pytest.mark.parametrize("shape", [(1, 64, 64), (64, 64), (3, 4, 64)])
def test_frames_of_other_shapes_are_refused(shape):
    with pytest.raises(ShapeError, match=r"expected frames of shape \(time >= 2, .* found"):
        motion_field(np.zeros(shape, np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("spacing", [0.5, 1.0, 2.0])
def test_the_motion_in_km_does_not_depend_on_the_grid(spacing):
    fine = translation(3, 5.0, -8.0, size=320, margin=64, seed=5)
    coarse = fine.reshape(3, 160, 2, 160, 2).mean((2, 4))
    in_km = motion_field(fine, spacing_km=spacing) * spacing
    again = motion_field(coarse, spacing_km=2 * spacing) * 2 * spacing
    difference = again - in_km.reshape(2, 160, 2, 160, 2).mean((2, 4))
    assert np.hypot(*difference).max() < 0.05 * np.hypot(*in_km).mean()


def test_rain_that_moves_apart_is_followed_in_both_halves():
    frames = np.concatenate([translation(3, 0.0, -3.0), translation(3, 0.0, 3.0, seed=1)], axis=1)
    motion = motion_field(frames)
    assert np.abs(motion[1, :100] + 3).max() < 0.5
    assert np.abs(motion[1, 220:] - 3).max() < 0.5


def fading(factor: float) -> np.ndarray:
    """Storms that move by 1.2 and 1.6 pixels of 2 km in 5 min, 13 m/s; rain fades by a factor."""
    frames = translation(5, 1.2, 1.6, size=128, margin=40)
    return (frames * factor ** np.arange(5, dtype=np.float32)[:, None, None])[::2]


@pytest.mark.parametrize("factor", [0.5, 0.2])
def test_rain_that_fades_is_not_fast(factor):
    motion = motion_field(fading(factor), spacing_km=2.0, ages=(4, 2, 0))
    speed = np.hypot(*motion) * 2000 / 300
    assert speed.max() < 30
    assert np.median(speed) < 16


def test_a_half_that_drops_out_leaves_the_motion_of_the_other():
    frames = fading(1.0)
    frames[-1, :, 64:] = 0
    motion = motion_field(frames, spacing_km=2.0, ages=(4, 2, 0))
    assert (np.hypot(*motion) * 2000 / 300).max() < 30
    away = np.hypot(motion[0] - 1.2, motion[1] - 1.6)
    assert np.median(away[:, :40]) < 0.8


def test_the_error_is_large_where_estimates_of_two_frames_differ():
    north = translation(3, 1.2, 1.6)  # storms that turn back, south of storms that move on
    south = translation(3, 0.0, 3.0, seed=1)[[0, 1, 0]]
    frames = np.concatenate([north, south], axis=1)
    _, error, side = motion_and_error(frames, spacing_km=1.0, step_minutes=5, ages=(2, 1, 0))
    edge = round(160 / side)
    assert np.median(error[edge + 2 :]) > 2 * np.median(error[: edge - 2])
    _, error, _ = motion_and_error(0 * frames, spacing_km=1.0, step_minutes=5, ages=(2, 1, 0))
    np.testing.assert_allclose(error, SPREAD, rtol=1e-5)


def test_arrivals_from_uncertain_motion_are_less_sure():
    north = translation(3, 0.0, 3.0)
    frames = np.concatenate([north, translation(3, 0.0, 3.0, seed=1)[[0, 1, 0]]], axis=1)
    cascade = Cascade.of(frames, spacing_km=1.0, step_minutes=5.0)
    sure = next(arrivals(cascade, 1)).sure
    assert sure.shape == frames.shape[1:]
    assert np.median(sure[220:]) < 0.8 * np.median(sure[:100])


def steady(dy: float, dx: float, shape: tuple[int, int]) -> np.ndarray:
    return np.broadcast_to(np.array([dy, dx], np.float32)[:, None, None], (2, *shape)).copy()


def test_no_motion_changes_nothing():
    rain = storms((50, 61), 1)
    np.testing.assert_array_equal(advect(rain, steady(0, 0, rain.shape), 3), np.stack([rain] * 3))


def test_whole_pixels_move_exactly_and_outside_is_missing():
    rain = storms((50, 61), 1)
    forecast = advect(rain, steady(2, -3, rain.shape), 4)
    for k, frame in enumerate(forecast, start=1):
        np.testing.assert_allclose(
            frame[2 * k :, : -3 * k], rain[: -2 * k, 3 * k :], rtol=1e-4, atol=1e-4
        )
        assert np.isnan(frame[: 2 * k]).all()
        assert np.isnan(frame[:, -3 * k :]).all()


def test_rotation_returns_to_where_the_rain_turns_to():
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


def test_coarse_paths_agree_with_paths_of_every_pixel(monkeypatch):
    rain = storms((90, 75), 2)
    y, x = np.mgrid[:90, :75]
    motion = np.stack([2 + np.sin(x / 20), 1 + np.cos(y / 20)]).astype(np.float32)
    coarse = advect(rain, motion, 6)
    monkeypatch.setattr(advection, "COARSENING", 1)
    fine = advect(rain, motion, 6)
    both = np.isfinite(coarse) & np.isfinite(fine)
    assert both.mean() > 0.98 * np.isfinite(fine).mean()
    assert np.abs(coarse - fine)[both].max() < 0.02 * rain.max()


def test_missing_pixels_move_along_and_do_not_become_dry():
    rain = np.zeros((40, 40), np.float32)
    rain[10, 10] = np.nan
    forecast = advect(rain, steady(1, 2, rain.shape), 2)
    assert np.isnan(forecast[1, 12, 14])
    inside = forecast[1, 2:, 4:]
    assert 1 <= np.isnan(inside).sum() <= 4
    assert (inside[np.isfinite(inside)] == 0).all()


def test_fields_carried_together_equal_fields_carried_alone():
    fields = np.random.default_rng(0).standard_normal((3, 50, 61), np.float32)
    y, x = np.mgrid[:50, :61]
    motion = np.stack([2 + np.sin(x / 20), 1 + np.cos(y / 20)]).astype(np.float32)
    (*_, points) = departures(motion, 4)
    together = carry_all(fields, points)
    for one, alone in zip(together, fields, strict=True):
        np.testing.assert_allclose(one, carry(alone, points), atol=6e-3)


def test_the_nearest_pixel_keeps_rates_and_missing_pixels():
    field = np.random.default_rng(1).random((40, 50), np.float32)
    field[10, 10] = np.nan
    motion = np.stack([np.full(field.shape, 1.4), np.full(field.shape, -2.3)]).astype(np.float32)
    (points,) = departures(motion, 1)
    made = carry(field, points, nearest=True)
    np.testing.assert_array_equal(made[2:38, :47], field[1:37, 2:49])
    assert np.isnan(made[:1]).all()
