"""Tests of the sums behind the fractions skill score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from nowcast.verification.fractions import fraction_sums


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
