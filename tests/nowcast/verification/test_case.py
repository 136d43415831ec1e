"""The sums, windows and power spectra of one case, compared with scores and pysteps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from nowcast.forecasters import Forecast
from nowcast.verification.case import CaseSums, score_case
from nowcast.verification.fractions import DRY, DRY_DECIBEL, band_power, fraction_sums, radial_power
from tests.nowcast.stores import storms

LEADS, SHAPE = 3, (24, 31)


def fields(seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """One observed and two forecast fields with different missing pixels."""
    rng = np.random.default_rng(seed)
    rain = rng.gamma(0.5, 2, size=(3, LEADS, *SHAPE)).astype(np.float32)
    rain[rng.random(rain.shape) < 0.1] = np.nan
    rain[:, :, 0, :3] = 1.0  # exactly at a threshold
    return rain[0], {"a": rain[1], "b": rain[2]}


def scored(observed: np.ndarray, forecasts: dict[str, np.ndarray], *more: object) -> CaseSums:
    return score_case(observed, {name: Forecast(f) for name, f in forecasts.items()}, *more)


def test_equal_to_scores():
    import xarray as xr
    from scores.categorical import ThresholdEventOperator
    from scores.continuous import mae

    observed, forecasts = fields(1)
    thresholds = (0.5, 1.0, 4.0)
    sums = scored(observed, forecasts, thresholds, [1])
    both = np.isfinite(forecasts["a"]) & np.isfinite(forecasts["b"])
    o = xr.DataArray(observed, dims=("lead", "y", "x"))
    for m, forecast in enumerate(forecasts.values()):
        f = xr.DataArray(np.where(both, forecast, np.nan), dims=("lead", "y", "x"))
        for t, threshold in enumerate(thresholds):
            events = ThresholdEventOperator(default_event_threshold=threshold)
            table = events.make_contingency_manager(f, o).transform(preserve_dims="lead")
            counts = table.get_counts()
            np.testing.assert_array_equal(sums.hits[m, :, t], counts["tp_count"])
            np.testing.assert_array_equal(sums.false_alarms[m, :, t], counts["fp_count"])
            np.testing.assert_array_equal(sums.misses[m, :, t], counts["fn_count"])
            np.testing.assert_array_equal(sums.pixels, counts["total_count"])
        error = mae(f.astype(float), o.astype(float), preserve_dims="lead")
        np.testing.assert_allclose(sums.absolute_error[m] / sums.pixels, error, rtol=1e-6)
    # At one pixel the fractions are the events themselves.
    wrong = (sums.false_alarms + sums.misses).astype(float)
    np.testing.assert_array_equal(sums.fractions[..., 0, 2], wrong)


def test_pixels_that_one_forecast_misses_count_for_none():
    observed = np.full((1, 8, 8), 5, np.float32)
    forecast = np.full((1, 8, 8), np.nan, np.float32)
    sums = scored(observed, {"knows": observed, "does not": forecast}, (1.0,), [3])
    for values in (sums.pixels, sums.hits, sums.misses, sums.absolute_error, sums.fractions):
        assert not values.any()


def test_leads_that_are_not_scored_count_nothing():
    observed, forecasts = fields(2)
    some = np.array([True, False, True])
    sums, every = (
        scored(observed, forecasts, (1.0,), [1], some),
        scored(observed, forecasts, (1.0,), [1]),
    )
    for name in ("pixels", "grid_pixels", "observed_sum"):
        np.testing.assert_array_equal(getattr(sums, name), getattr(every, name) * some)
    for name in ("hits", "misses", "brier", "crps", "fractions", "absolute_error"):
        values, whole = getattr(sums, name), getattr(every, name)
        assert not values[:, 1].any()
        np.testing.assert_array_equal(values[:, [0, 2]], whole[:, [0, 2]])


@pytest.mark.parametrize("size", [64, 65])
def test_equal_to_pysteps(size):
    spectral = pytest.importorskip("pysteps.utils.spectral")
    rain = storms((size, size), seed=1)
    decibel = np.where(rain >= DRY, 10 * np.log10(np.maximum(rain, DRY)), DRY_DECIBEL)
    expected = spectral.rapsd(decibel - decibel.mean(), fft_method=np.fft) / size**2
    wavelength, power = radial_power(rain, spacing=2.0)
    np.testing.assert_allclose(power, expected[1 : 1 + len(power)], rtol=1e-6)
    np.testing.assert_allclose(wavelength, 2.0 * size / np.arange(1, len(power) + 1))


@pytest.mark.parametrize("shape", [(64, 64), (48, 96)])
def test_a_wave_has_its_power_at_its_wavelength(shape):
    x = np.arange(shape[1])
    decibel = 5 * np.sin(2 * np.pi * x / 8) * np.ones(shape)
    wavelength, power = radial_power((10 ** (decibel / 10)).astype(np.float32), spacing=1.0)
    assert wavelength[np.argmax(power)] == pytest.approx(8)


def test_blur_lowers_the_power_of_small_scales_only():
    rain = storms((128, 128), seed=2, cover=1.0)
    blurred = ndimage.gaussian_filter(rain, 2, mode="wrap")
    wavelength, sharp = radial_power(rain, 1.0)
    _, soft = radial_power(blurred, 1.0)
    assert band_power(wavelength, soft, 4, 8) < 0.3 * band_power(wavelength, sharp, 4, 8)
    assert band_power(wavelength, soft, 64, 128) > 0.7 * band_power(wavelength, sharp, 64, 128)


def test_missing_is_dry_and_an_empty_band_has_no_power():
    rain = storms((32, 32), seed=3)
    holes = rain.copy()
    holes[:5] = np.nan
    rain[:5] = 0
    wavelength, power = radial_power(rain, 1.0)
    np.testing.assert_array_equal(power, radial_power(holes, 1.0)[1])
    assert np.isnan(band_power(wavelength, power, 0.1, 0.2))


@settings(deadline=None)  # the first example waits for the compiler
@given(st.integers(0, 999), st.integers(1, 9), st.integers(1, 12), st.integers(1, 7))
def test_equal_to_sliding_windows(seed, ny, nx, window):
    window = min(window, ny, nx)
    f, o = np.random.default_rng(seed).random((2, 3, ny, nx)) < 0.4
    views = [np.lib.stride_tricks.sliding_window_view(e, (window, window), (1, 2)) for e in (f, o)]
    p, q = (view.mean((-1, -2)) for view in views)
    expected = np.stack([(a**2).sum((1, 2)) for a in (p, q, p - q)], axis=-1)
    np.testing.assert_allclose(fraction_sums(f, o, window), expected, rtol=1e-12, atol=1e-12)
