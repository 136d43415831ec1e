"""Tests of the confidence intervals."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.verification.bootstrap import block_weights, csi_difference_interval


@pytest.mark.parametrize(("cases", "block"), [(1, 1), (7, 1), (12, 4), (10, 4), (3, 9)])
def test_samples_are_runs_of_cases(cases: int, block: int) -> None:
    weights = block_weights(cases, block, draws=400)
    runs = -(-cases // min(block, cases))
    assert (weights.sum(1) == runs * min(block, cases)).all()
    np.testing.assert_allclose(weights.mean(0), weights.sum(1).mean() / cases, rtol=0.25)
    np.testing.assert_array_equal(weights, block_weights(cases, block, draws=400))


def test_a_run_of_all_cases_leaves_nothing_to_chance() -> None:
    assert (block_weights(5, 5, 20) == 1).all()


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    trials = 200
    for _ in range(trials):
        # Two forecasters, 40 cases of 100 pixels of union each; true CSI 0.5 and 0.4.
        hits = rng.binomial(100, [[0.4, 0.5]] * 40)[:, :, np.newaxis, np.newaxis]
        unions = np.full_like(hits, 100)
        low, high = csi_difference_interval(hits, unions, 0, block_weights(40, 1, 300))[:, 1, 0, 0]
        covered += low <= 0.1 <= high
    assert 0.88 <= covered / trials <= 0.99


def test_reference_has_no_difference_and_no_events_no_interval() -> None:
    hits = np.arange(12).reshape(6, 2, 1, 1)
    unions = hits + 3
    interval = csi_difference_interval(hits, unions, 1, block_weights(6, 1, 50))
    assert (interval[:, 1] == 0).all()
    nothing = csi_difference_interval(0 * hits, 0 * hits, 1, block_weights(6, 1, 50))
    assert np.isnan(nothing).all()
