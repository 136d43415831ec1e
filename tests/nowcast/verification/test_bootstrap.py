"""Confidence intervals, and scores pooled over cases."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from nowcast.forecasters import Forecast
from nowcast.verification.bootstrap import bootstrap_weights, difference_interval, independent_runs
from nowcast.verification.case import CaseSums, score_case
from nowcast.verification.pool import pool


@pytest.mark.parametrize(("cases", "block"), [(1, 1), (7, 1), (12, 4), (10, 4), (3, 9)])
def test_samples_of_one_event_are_runs_of_cases(cases, block):
    weights = bootstrap_weights(np.zeros(cases, int), block, draws=400)
    runs = -(-cases // min(block, cases))
    assert (weights.sum(1) == runs * min(block, cases)).all()
    np.testing.assert_allclose(weights.mean(0), weights.sum(1).mean() / cases, rtol=0.25)
    np.testing.assert_array_equal(
        weights, bootstrap_weights(np.zeros(cases, int), block, draws=400)
    )


def test_a_run_of_all_cases_gives_equal_samples():
    assert (bootstrap_weights(np.zeros(5, int), 5, 20) == 1).all()


def test_whole_events_are_drawn():
    # Events of one run each: a sample has each case of an event as often as the others.
    weights = bootstrap_weights(np.repeat(range(4), 3), 3, 500)
    by_event = weights.reshape(500, 4, 3)
    assert (by_event == by_event[..., :1]).all()
    assert (by_event[..., 0].sum(1) == 4).all()
    assert (by_event[..., 0] == 0).any()
    np.testing.assert_allclose(weights.mean(0), 1, atol=0.15)


def test_two_events_are_too_few_to_leave_one_out():
    weights = bootstrap_weights([0, 0, 0, 1, 1, 1], 1, 200)
    assert (weights.reshape(200, 2, 3).sum(2) == 3).all()


def test_events_of_other_sizes_keep_their_cases():
    labels = np.array([0, 0, 0, 0, 0, 1, 2, 2])
    weights = bootstrap_weights(labels, 2, 2000)
    assert (weights[:, 5] == weights[:, 5].round()).all()
    np.testing.assert_allclose(weights[:, :5].mean(0), weights[:, :5].mean(), rtol=0.1)


def test_runs_that_share_nothing_are_counted():
    assert independent_runs(np.zeros(12, int), 4) == 3
    assert independent_runs([0, 0, 0, 1, 2], 2) == 3
    assert independent_runs([], 2) == 0


def interval(hits: np.ndarray, unions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return difference_interval(hits, unions, 0, weights)[:, 1, 0, 0]


@pytest.mark.slow
def test_interval_covers_the_truth_about_as_often_as_it_promises():
    rng = np.random.default_rng(3)
    covered = 0
    trials = 200
    for _ in range(trials):
        # Two forecasters, 40 cases of 100 pixels of union each; true CSI 0.5 and 0.4.
        hits = rng.binomial(100, [[0.4, 0.5]] * 40)[:, :, np.newaxis, np.newaxis]
        weights = bootstrap_weights(np.zeros(40, int), 1, 300)
        low, high = interval(hits, np.full_like(hits, 100), weights)
        covered += low <= 0.1 <= high
    assert 0.88 <= covered / trials <= 0.99


@pytest.mark.slow
def test_gains_that_differ_by_event_need_draws_of_events():
    # All cases of an event have one gain: 8 events of 20 cases are 8 independent values, not 160.
    rng = np.random.default_rng(4)
    labels = np.repeat(range(8), 20)
    covered = {"events": 0, "cases": 0}
    trials = 120
    for _ in range(trials):
        gain = rng.normal(0.1, 0.1, 8)[labels]
        hits = np.stack([0 * gain + 40, 40 + 100 * gain], 1)[:, :, np.newaxis, np.newaxis]
        for name, drawn in (("events", labels), ("cases", np.zeros(160, int))):
            weights = bootstrap_weights(drawn, 1, 300)
            low, high = interval(hits, np.full_like(hits, 100.0), weights)
            covered[name] += low <= 0.1 <= high
    assert covered["events"] / trials > 0.8
    assert covered["cases"] / trials < 0.6


def test_reference_has_no_difference_and_no_events_no_interval():
    hits = np.arange(12).reshape(6, 2, 1, 1)
    weights = bootstrap_weights(np.zeros(6, int), 1, 50)
    assert (difference_interval(hits, hits + 3, 1, weights)[:, 1] == 0).all()
    assert np.isnan(difference_interval(0 * hits, 0 * hits, 1, weights)).all()


MINUTE = np.timedelta64(60, "s")


def cases(count: int) -> tuple[np.ndarray, list[CaseSums]]:
    """Return fields (case, observed and two forecasters, lead, y, x) and their sums."""
    rain = np.random.default_rng(8).gamma(0.5, 2, (count, 3, 2, 12, 15)).astype(np.float32)
    return rain, [scored(o, a, b) for o, a, b in rain]


def scored(o: np.ndarray, a: np.ndarray, b: np.ndarray) -> CaseSums:
    return score_case(o, {"a": Forecast(a), "b": Forecast(b)}, (1.0, 4.0), [1, 3])


def pooled(sums: list[CaseSums], reference: str | None = None, block: int = 1) -> xr.Dataset:
    return pool(
        sums,
        forecasters=["a", "b"],
        lead_time=np.array([5, 10]) * MINUTE,
        thresholds=(1.0, 4.0),
        scales=(1, 3),
        reference=reference,
        block=block,
    )


def test_pooled_cases_are_one_large_case():
    from scores.continuous import mae
    from scores.spatial import fss_2d

    rain, sums = cases(4)
    scores = pooled(sums)
    o, a = (xr.DataArray(rain[:, k].astype(float), dims=("case", "lead", "y", "x")) for k in (0, 1))
    np.testing.assert_allclose(scores["mae"][0], mae(a, o, preserve_dims="lead"), rtol=1e-6)
    for t, threshold in enumerate((1.0, 4.0)):
        f_events, o_events = rain[:, 1] >= threshold, rain[:, 0] >= threshold
        hits = (f_events & o_events).sum((0, 2, 3))
        np.testing.assert_array_equal(scores["hits"][0, :, t], hits)
        neither = (~f_events & ~o_events).sum((0, 2, 3))
        np.testing.assert_array_equal(scores["correct_negatives"][0, :, t], neither)
        csi = hits / (f_events | o_events).sum((0, 2, 3))
        np.testing.assert_allclose(scores["csi"][0, :, t], csi)
        np.testing.assert_allclose(
            scores["bias"][0, :, t], f_events.sum((0, 2, 3)) / o_events.sum((0, 2, 3))
        )
        for lead in range(2):
            fss = fss_2d(
                a[:, lead],
                o[:, lead],
                event_threshold=threshold,
                threshold_operator=np.greater_equal,
                window_size=(3, 3),
                spatial_dims=("y", "x"),
                reduce_dims=["case", "y", "x"],
            )
            np.testing.assert_allclose(scores["fss"][0, lead, t, 1], fss, rtol=1e-12)


def test_pixels_left_out_show_in_the_fraction():
    _, sums = cases(2)
    assert (pooled(sums)["scored_fraction"] == 1).all()
    o, a, b = np.ones((3, 2, 12, 15), np.float32)
    b[1, :6] = np.nan
    half = scored(o, a, b)
    np.testing.assert_array_equal(pooled([sums[0], half])["scored_fraction"], [1, 0.75])


def test_interval_needs_three_runs_of_cases():
    _, sums = cases(6)
    assert "csi_difference" not in pooled(sums)
    enough, too_few = pooled(sums, "b", block=2), pooled(sums, "b", block=3)
    assert (enough["csi_difference_low"] <= enough["csi_difference"]).all()
    assert (enough["csi_difference"] <= enough["csi_difference_high"]).all()
    assert (enough["csi_difference_low"][0] < enough["csi_difference_high"][0]).all()
    assert too_few["csi_difference_low"].isnull().all()
    xr.testing.assert_equal(enough["csi_difference"], too_few["csi_difference"])
