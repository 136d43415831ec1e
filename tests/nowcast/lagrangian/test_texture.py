"""Tests of texture: the spectrum, the rates and the places of a realistic field."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from nowcast.lagrangian.texture import _power, _rings, sharpened, textured


def rain(seed: int, sigma: float) -> np.ndarray:
    """Rain in a third of a grid, with structures of so many cells."""
    noise = gaussian_filter(np.random.default_rng(seed).normal(size=(96, 128)), sigma)
    return np.maximum(10 ** (0.5 * noise / noise.std()) - 2, 0).astype(np.float32)


def small_scales(field: np.ndarray) -> float:
    """Power of the wavelengths below 16 cells."""
    level = np.log(np.maximum(np.nan_to_num(field), np.float32(0.1)))
    ring = _rings(field.shape)
    power = _power(np.fft.rfft2(level), ring)
    return float(power[ring[0, 8] :].sum())


def test_a_smooth_field_gets_the_spectrum_and_rates_of_the_frame() -> None:
    moved = rain(0, 2.0)
    smooth = gaussian_filter(np.roll(moved, 12, axis=1), 6).astype(np.float32)
    made = textured(smooth, moved)
    assert small_scales(smooth) < 0.2 * small_scales(moved)
    assert 0.9 < small_scales(made) / small_scales(moved) < 1.1
    np.testing.assert_allclose(np.sort(made, None), np.sort(moved, None), rtol=0.1, atol=0.1)
    # It is nearer to the expected field than the frame is.
    nearer, moved_only = (np.corrcoef(f.ravel(), smooth.ravel())[0, 1] for f in (made, moved))
    assert nearer > moved_only + 0.05


def test_missing_and_dry_stay_so() -> None:
    moved = rain(1, 2.0)
    moved[:20], smooth = np.nan, gaussian_filter(rain(1, 2.0), 6).astype(np.float32)
    smooth[:, :30] = np.nan
    made = textured(smooth, moved)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(moved) | np.isnan(smooth))
    assert np.nanmax(made) <= np.nanmax(moved[:, 30:])
    assert not textured(np.zeros_like(moved), np.zeros_like(moved)).any()
    assert np.isnan(textured(smooth, np.full_like(moved, np.nan))).all()


def test_noise_is_tilted_until_members_are_as_sharp_as_rain() -> None:
    frame = rain(2, 4.0)
    frame[:30, :40] = np.nan
    tilts: list[float] = []

    def member(tilt: float) -> np.ndarray:
        tilts.append(tilt)
        return rain(2, 3 * tilt**0.5)

    tilt = sharpened(member, 1.0, frame, 1.0)
    assert 1.2 < tilt < 2.2
    known = np.isfinite(frame)
    sharpness = small_scales(np.where(known, member(tilt), 0)) / small_scales(frame)
    assert 0.9 < sharpness < 1.1
    assert len(tilts) <= 5
    assert sharpened(lambda tilt: frame, 1.2, frame, 1.0) == pytest.approx(1.2)
    assert sharpened(member, 1.2, frame, 30.0) == 1.2  # no detail of 4 to 16 km on such a grid
    assert sharpened(lambda tilt: 0 * frame, 1.2, frame, 1.0) == 1.2
