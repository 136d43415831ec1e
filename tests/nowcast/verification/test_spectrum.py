"""Power spectra of rain: against pysteps, and what blurring takes away."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from daskdl.errors import SettingsError
from nowcast.verification.fractions import DRY, DRY_DECIBEL, band_power, fraction_sums, radial_power
from tests.nowcast.fields import storms


@pytest.mark.parametrize("size", [64, 65])
def test_equal_to_pysteps(size: int) -> None:
    spectral = pytest.importorskip("pysteps.utils.spectral")
    rain = storms((size, size), seed=1)
    decibel = np.where(rain >= DRY, 10 * np.log10(np.maximum(rain, DRY)), DRY_DECIBEL)
    expected = spectral.rapsd(decibel - decibel.mean(), fft_method=np.fft) / size**2
    wavelength, power = radial_power(rain, spacing=2.0)
    np.testing.assert_allclose(power, expected[1 : 1 + len(power)], rtol=1e-6)
    np.testing.assert_allclose(wavelength, 2.0 * size / np.arange(1, len(power) + 1))


@pytest.mark.parametrize("shape", [(64, 64), (48, 96)])
def test_a_wave_has_its_power_at_its_wavelength(shape: tuple[int, int]) -> None:
    x = np.arange(shape[1])
    decibel = 5 * np.sin(2 * np.pi * x / 8) * np.ones(shape)
    wavelength, power = radial_power((10 ** (decibel / 10)).astype(np.float32), spacing=1.0)
    assert wavelength[np.argmax(power)] == pytest.approx(8)


def test_blur_takes_away_detail_and_leaves_the_large() -> None:
    rain = storms((128, 128), seed=2, cover=1.0)
    blurred = ndimage.gaussian_filter(rain, 2, mode="wrap")
    wavelength, sharp = radial_power(rain, 1.0)
    _, soft = radial_power(blurred, 1.0)
    assert band_power(wavelength, soft, 4, 8) < 0.3 * band_power(wavelength, sharp, 4, 8)
    assert band_power(wavelength, soft, 64, 128) > 0.7 * band_power(wavelength, sharp, 64, 128)


def test_missing_is_dry_and_an_empty_band_has_no_power() -> None:
    rain = storms((32, 32), seed=3)
    holes = rain.copy()
    holes[:5] = np.nan
    rain[:5] = 0
    wavelength, power = radial_power(rain, 1.0)
    np.testing.assert_array_equal(power, radial_power(holes, 1.0)[1])
    assert np.isnan(band_power(wavelength, power, 0.1, 0.2))


@settings(deadline=None)  # the first example waits for the compiler
@given(st.integers(0, 999), st.integers(1, 9), st.integers(1, 12), st.integers(1, 7))
def test_equal_to_plain_windows(seed: int, ny: int, nx: int, window: int) -> None:
    window = min(window, ny, nx)
    f, o = np.random.default_rng(seed).random((2, 3, ny, nx)) < 0.4
    views = [np.lib.stride_tricks.sliding_window_view(e, (window, window), (1, 2)) for e in (f, o)]
    p, q = (view.mean((-1, -2)) for view in views)
    expected = np.stack([(a**2).sum((1, 2)) for a in (p, q, p - q)], axis=-1)
    np.testing.assert_allclose(fraction_sums(f, o, window), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("window", [1, 2, 7])
def test_equal_to_scores(window: int) -> None:
    import xarray as xr
    from scores.spatial import fss_2d, fss_2d_single_field

    f, o = np.random.default_rng(window).gamma(0.4, size=(2, 4, 30, 41))
    sums = fraction_sums(f > 0.5, o > 0.5, window)
    for (forecast, observed, difference), f_lead, o_lead in zip(sums, f, o, strict=True):
        single = fss_2d_single_field(
            f_lead, o_lead, event_threshold=0.5, window_size=(window, window)
        )
        assert 1 - difference / (forecast + observed) == pytest.approx(single, rel=1e-12)
    pooled = fss_2d(
        *(xr.DataArray(field, dims=("lead", "y", "x")) for field in (f, o)),
        event_threshold=0.5,
        window_size=(window, window),
        spatial_dims=("y", "x"),
        reduce_dims=["lead", "y", "x"],
    )
    forecast, observed, difference = sums.sum(0)
    assert 1 - difference / (forecast + observed) == pytest.approx(float(pooled), rel=1e-12)


@pytest.mark.parametrize("window", [0, 6])
def test_windows_that_do_not_fit_are_refused(window: int) -> None:
    events = np.zeros((1, 5, 8), bool)
    with pytest.raises(SettingsError, match=f"from 1 to 5 pixels .* found {window}"):
        fraction_sums(events, events, window)
