"""Tests of the sums of one case."""

from __future__ import annotations

import operator

import numpy as np

from nowcast.forecasters import Forecast
from nowcast.verification.case import CaseSums, score_case

LEADS, SHAPE = 3, (24, 31)


def fields(seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Observed and two forecast fields, each with missing pixels of its own."""
    rng = np.random.default_rng(seed)
    rain = rng.gamma(0.5, 2, size=(3, LEADS, *SHAPE)).astype(np.float32)
    rain[rng.random(rain.shape) < 0.1] = np.nan
    rain[:, :, 0, :3] = 1.0  # exactly at a threshold
    return rain[0], {"a": rain[1], "b": rain[2]}


def scored(observed: np.ndarray, forecasts: dict[str, np.ndarray], *more: object) -> CaseSums:
    return score_case(observed, {name: Forecast(f) for name, f in forecasts.items()}, *more)


def test_equal_to_brute_force() -> None:
    observed, forecasts = fields(0)
    thresholds = (0.5, 1.0, 4.0)
    sums = scored(observed, forecasts, thresholds, [1])
    expected = np.zeros((4, 2, LEADS, 3), int)
    error = np.zeros((2, LEADS))
    pixels = np.zeros(LEADS, int)
    for lead in range(LEADS):
        for y, x in np.ndindex(SHAPE):
            o = observed[lead, y, x]
            values = [forecast[lead, y, x] for forecast in forecasts.values()]
            if np.isnan(o) or np.isnan(values).any():
                continue
            pixels[lead] += 1
            for m, f in enumerate(values):
                error[m, lead] += abs(float(f) - float(o))
                for t, threshold in enumerate(thresholds):
                    kind = 2 * (f >= threshold) + (o >= threshold)
                    expected[kind, m, lead, t] += 1
    np.testing.assert_array_equal(sums.pixels, pixels)
    np.testing.assert_array_equal(sums.hits, expected[3])
    np.testing.assert_array_equal(sums.false_alarms, expected[2])
    np.testing.assert_array_equal(sums.misses, expected[1])
    np.testing.assert_allclose(sums.absolute_error, error, rtol=1e-6)
    # At one pixel the fractions are the events themselves.
    wrong = (sums.false_alarms + sums.misses).astype(float)
    np.testing.assert_array_equal(sums.fractions[..., 0, 2], wrong)


def test_equal_to_scores() -> None:
    import xarray as xr
    from scores.categorical import ThresholdEventOperator
    from scores.continuous import mae

    observed, forecasts = fields(1)
    sums = scored(observed, forecasts, (1.0,), [])
    both = np.isfinite(forecasts["a"]) & np.isfinite(forecasts["b"])
    o = xr.DataArray(observed, dims=("lead", "y", "x"))
    for m, forecast in enumerate(forecasts.values()):
        f = xr.DataArray(np.where(both, forecast, np.nan), dims=("lead", "y", "x"))
        events = ThresholdEventOperator(default_event_threshold=1.0, default_op_fn=operator.ge)
        counts = events.make_contingency_manager(f, o).transform(preserve_dims="lead").get_counts()
        np.testing.assert_array_equal(sums.hits[m, :, 0], counts["tp_count"])
        np.testing.assert_array_equal(sums.false_alarms[m, :, 0], counts["fp_count"])
        np.testing.assert_array_equal(sums.misses[m, :, 0], counts["fn_count"])
        np.testing.assert_array_equal(sums.pixels, counts["total_count"])
        error = mae(f.astype(float), o.astype(float), preserve_dims="lead")
        np.testing.assert_allclose(sums.absolute_error[m] / sums.pixels, error, rtol=1e-6)


def test_what_is_not_scored_counts_for_nobody() -> None:
    observed = np.full((1, 8, 8), 5, np.float32)
    forecast = np.full((1, 8, 8), np.nan, np.float32)
    sums = scored(observed, {"knows": observed, "does not": forecast}, (1.0,), [3])
    for values in (sums.pixels, sums.hits, sums.misses, sums.absolute_error, sums.fractions):
        assert not values.any()


def test_leads_that_are_not_scored_count_nothing() -> None:
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
