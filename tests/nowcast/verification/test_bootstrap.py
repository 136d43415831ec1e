"""Tests of the confidence intervals."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.verification.bootstrap import (
    bootstrap_weights,
    difference_interval,
    independent_runs,
)


@pytest.mark.parametrize(("cases", "block"), [(1, 1), (7, 1), (12, 4), (10, 4), (3, 9)])
def test_samples_of_one_event_are_runs_of_cases(cases: int, block: int) -> None:
    weights = bootstrap_weights(np.zeros(cases, int), block, draws=400)
    runs = -(-cases // min(block, cases))
    assert (weights.sum(1) == runs * min(block, cases)).all()
    np.testing.assert_allclose(weights.mean(0), weights.sum(1).mean() / cases, rtol=0.25)
    np.testing.assert_array_equal(
        weights, bootstrap_weights(np.zeros(cases, int), block, draws=400)
    )


def test_a_run_of_all_cases_leaves_nothing_to_chance() -> None:
    assert (bootstrap_weights(np.zeros(5, int), 5, 20) == 1).all()


def test_whole_events_are_drawn() -> None:
    # Events of one run each: a sample has each case of an event as often as the others.
    weights = bootstrap_weights(np.repeat(range(4), 3), 3, 500)
    by_event = weights.reshape(500, 4, 3)
    assert (by_event == by_event[..., :1]).all()
    assert (by_event[..., 0].sum(1) == 4).all()
    assert (by_event[..., 0] == 0).any()
    np.testing.assert_allclose(weights.mean(0), 1, atol=0.15)


def test_two_events_are_too_few_to_leave_one_out() -> None:
    weights = bootstrap_weights([0, 0, 0, 1, 1, 1], 1, 200)
    assert (weights.reshape(200, 2, 3).sum(2) == 3).all()


def test_events_of_other_sizes_keep_their_cases() -> None:
    labels = np.array([0, 0, 0, 0, 0, 1, 2, 2])
    weights = bootstrap_weights(labels, 2, 2000)
    assert (weights[:, 5] == weights[:, 5].round()).all()
    np.testing.assert_allclose(weights[:, :5].mean(0), weights[:, :5].mean(), rtol=0.1)


def test_runs_that_share_nothing_are_counted() -> None:
    assert independent_runs(np.zeros(12, int), 4) == 3
    assert independent_runs([0, 0, 0, 1, 2], 2) == 3
    assert independent_runs([], 2) == 0


def interval(hits: np.ndarray, unions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return difference_interval(hits, unions, 0, weights)[:, 1, 0, 0]


@pytest.mark.slow
def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
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
def test_what_differs_by_event_needs_events_and_not_cases() -> None:
    # The gain is of the event, not of the case: 8 events of 20 cases say 8 things, not 160.
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


def test_reference_has_no_difference_and_no_events_no_interval() -> None:
    hits = np.arange(12).reshape(6, 2, 1, 1)
    weights = bootstrap_weights(np.zeros(6, int), 1, 50)
    assert (difference_interval(hits, hits + 3, 1, weights)[:, 1] == 0).all()
    assert np.isnan(difference_interval(0 * hits, 0 * hits, 1, weights)).all()
