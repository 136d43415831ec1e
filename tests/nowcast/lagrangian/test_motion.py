"""Tests of the motion field."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import SettingsError, ShapeError
from nowcast.lagrangian.cascade import Cascade, arrivals
from nowcast.lagrangian.motion import SPREAD, motion_and_error, motion_field
from tests.nowcast.fields import rotation, translation


@pytest.mark.parametrize(("dy", "dx"), [(3.0, -2.0), (-1.5, 0.7), (0.0, 6.0)])
def test_translation_is_found_within_ten_per_cent(dy: float, dx: float) -> None:
    motion = motion_field(translation(3, dy, dx))
    assert motion.shape == (2, 160, 160)
    assert motion.dtype == np.float32
    error = np.hypot(motion[0] - dy, motion[1] - dx)
    assert error.max() < 0.1 * np.hypot(dy, dx)


def test_rotation_is_found_within_ten_per_cent_where_it_rains() -> None:
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


def test_missing_areas_neither_spread_nor_stop_the_rain() -> None:
    frames = translation(3, 2.0, -3.0)
    frames[:, :50] = np.nan
    frames[1, 90:100, 20:60] = np.nan
    motion = motion_field(frames)
    assert np.isfinite(motion).all()
    assert np.hypot(motion[0] - 2, motion[1] + 3).max() < 0.1 * np.hypot(2, 3)


def test_a_missing_frame_leaves_the_other_pairs() -> None:
    frames = translation(4, 2.0, -3.0)
    frames[-3] = np.nan
    motion = motion_field(frames)
    assert np.hypot(motion[0] - 2, motion[1] + 3).max() < 0.1 * np.hypot(2, 3)


@pytest.mark.parametrize("ages", [(7.5, 3, 0.5), (4, 0), (20, 10, 2.5)])
def test_frames_at_any_times_show_the_same_motion_per_step(ages) -> None:
    frames = translation(41, 0.6, -0.8)
    chosen = np.stack([frames[round(2 * (20 - age))] for age in ages])
    motion = motion_field(chosen, ages=ages)
    assert np.hypot(motion[0] - 1.2, motion[1] + 1.6).max() < 0.2


def test_dry_area_takes_the_motion_of_the_rain_around_it() -> None:
    frames = translation(3, 2.0, 2.0)
    frames[:, :, 60:] = 0
    motion = motion_field(frames)
    far = motion[:, :, 120:]
    assert np.abs(far - 2).max() < 0.6


@pytest.mark.parametrize("value", [0.0, 0.05, 4.0, np.nan])
def test_nothing_to_see_is_no_motion(value: float) -> None:
    frames = np.full((3, 64, 80), value, np.float32)
    np.testing.assert_array_equal(motion_field(frames), np.zeros((2, 64, 80), np.float32))


def test_grids_that_no_block_divides() -> None:
    frames = translation(2, 1.0, 1.0)[:, :137, :91]
    motion = motion_field(frames)
    assert motion.shape == (2, 137, 91)
    assert np.abs(motion - 1).max() < 0.2


@pytest.mark.parametrize("shape", [(1, 64, 64), (64, 64), (3, 4, 64)])
def test_frames_that_tell_no_motion_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"expected frames of shape \(time >= 2, .* found"):
        motion_field(np.zeros(shape, np.float32))


@pytest.mark.parametrize("setting", [{"ages": [1, 1, 0]}, {"spacing_km": 0}])
def test_settings_that_make_no_sense_are_refused(setting: dict[str, float]) -> None:
    name = next(iter(setting))
    with pytest.raises(SettingsError, match=name):
        motion_field(np.zeros((3, 64, 64), np.float32), **setting)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("spacing", [0.5, 1.0, 2.0])
def test_the_motion_in_km_does_not_depend_on_the_grid(spacing: float) -> None:
    fine = translation(3, 5.0, -8.0, size=320, margin=64, seed=5)
    coarse = fine.reshape(3, 160, 2, 160, 2).mean((2, 4))
    in_km = motion_field(fine, spacing_km=spacing) * spacing
    again = motion_field(coarse, spacing_km=2 * spacing) * 2 * spacing
    difference = again - in_km.reshape(2, 160, 2, 160, 2).mean((2, 4))
    assert np.hypot(*difference).max() < 0.05 * np.hypot(*in_km).mean()


def test_a_field_of_rain_that_moves_apart_is_followed_in_both_halves() -> None:
    frames = np.concatenate([translation(3, 0.0, -3.0), translation(3, 0.0, 3.0, seed=1)], axis=1)
    motion = motion_field(frames)
    assert np.abs(motion[1, :100] + 3).max() < 0.5
    assert np.abs(motion[1, 220:] - 3).max() < 0.5


def fading(kept: float) -> np.ndarray:
    """Storms that move by 1.2 and 1.6 pixels of 2 km in 5 min, 13 m/s, and lose rain each step."""
    frames = translation(5, 1.2, 1.6, size=128, margin=40)
    return (frames * kept ** np.arange(5, dtype=np.float32)[:, None, None])[::2]


@pytest.mark.parametrize("kept", [0.5, 0.2])
def test_rain_that_fades_is_not_fast(kept: float) -> None:
    motion = motion_field(fading(kept), spacing_km=2.0, ages=(4, 2, 0))
    speed = np.hypot(*motion) * 2000 / 300
    assert speed.max() < 30
    assert np.median(speed) < 16


def test_a_half_that_drops_out_leaves_the_motion_of_the_other() -> None:
    frames = fading(1.0)
    frames[-1, :, 64:] = 0
    motion = motion_field(frames, spacing_km=2.0, ages=(4, 2, 0))
    assert (np.hypot(*motion) * 2000 / 300).max() < 30
    away = np.hypot(motion[0] - 1.2, motion[1] - 1.6)
    assert np.median(away[:, :40]) < 0.8


def test_the_error_is_large_where_estimates_of_two_frames_differ() -> None:
    north = translation(3, 1.2, 1.6)  # storms that turn back, south of storms that move on
    south = translation(3, 0.0, 3.0, seed=1)[[0, 1, 0]]
    frames = np.concatenate([north, south], axis=1)
    _, error, side = motion_and_error(frames, spacing_km=1.0, step_minutes=5, ages=(2, 1, 0))
    edge = round(160 / side)
    assert np.median(error[edge + 2 :]) > 2 * np.median(error[: edge - 2])
    _, error, _ = motion_and_error(0 * frames, spacing_km=1.0, step_minutes=5, ages=(2, 1, 0))
    np.testing.assert_allclose(error, SPREAD, rtol=1e-5)


def test_what_arrives_from_where_motion_is_in_doubt_is_less_sure() -> None:
    north = translation(3, 0.0, 3.0)
    frames = np.concatenate([north, translation(3, 0.0, 3.0, seed=1)[[0, 1, 0]]], axis=1)
    cascade = Cascade.of(frames, spacing_km=1.0, step_minutes=5.0)
    sure = next(arrivals(cascade, 1)).sure
    assert sure.shape == frames.shape[1:]
    assert np.median(sure[220:]) < 0.8 * np.median(sure[:100])
