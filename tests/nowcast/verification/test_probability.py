"""Brier score, reliability, ROC, CRPS and ranks, compared with scores, pysteps, definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nowcast.verification.probability import (
    BINS,
    brier_parts,
    crps,
    ensemble_sums,
    probability_sums,
    reliability_curve,
    roc_curve,
)


def made(seed: int, shape: tuple[int, int] = (30, 40), levels: int | None = None):
    """Return probabilities, events drawn from them, and a mask of most pixels."""
    rng = np.random.default_rng(seed)
    p = rng.random(shape) ** 2
    if levels is not None:
        p = np.round(p * levels) / levels
    return p.astype(np.float32), rng.random(shape) < p, rng.random(shape) < 0.9


@given(st.integers(0, 999))
def test_brier_score_equals_scores(seed):
    xr = pytest.importorskip("xarray")
    from scores.probability import brier_score

    p, event, scored = made(seed)
    sums = probability_sums(p, event, scored)
    expected = brier_score(
        xr.DataArray(p[scored].astype(float), dims="n"),
        xr.DataArray(event[scored].astype(float), dims="n"),
    )
    assert brier_parts(sums).score == pytest.approx(float(expected), rel=1e-9)


@given(st.integers(0, 999), st.sampled_from([5, 10, 20]))
def test_parts_add_up_and_nothing_is_within_bins_of_few_levels(seed, bins):
    p, event, scored = made(seed)
    parts = brier_parts(probability_sums(p, event, scored), bins)
    total = parts.reliability - parts.resolution + parts.uncertainty + parts.within
    assert parts.score == pytest.approx(total)
    # With one probability in each bin Murphy's three parts add up to the score.
    p, event, scored = made(seed, levels=4)
    assert brier_parts(probability_sums(p, event, scored), bins).within == pytest.approx(0)


def test_sums_of_two_cases_add_up():
    a, b = made(1), made(2)
    both = [np.concatenate(pair) for pair in zip(a, b, strict=True)]
    np.testing.assert_allclose(
        probability_sums(*a) + probability_sums(*b), probability_sums(*both), rtol=1e-12
    )


def test_reliability_equals_pysteps():
    verification = pytest.importorskip("pysteps.verification.probscores")
    p, event, scored = made(3)
    diagram = verification.reldiag_init(0.5, n_bins=10)
    verification.reldiag_accum(diagram, p[scored].astype(float), event[scored].astype(float))
    expected = verification.reldiag_compute(diagram)
    mean, frequency, count = reliability_curve(probability_sums(p, event, scored))
    np.testing.assert_allclose(mean, expected[0], rtol=1e-5)
    np.testing.assert_allclose(frequency, expected[1], rtol=1e-12)
    assert count.sum() == scored.sum()


def test_area_under_roc_equals_scores():
    xr = pytest.importorskip("xarray")
    from scores.probability import roc_curve_data

    p, event, scored = made(4, levels=BINS)
    expected = roc_curve_data(
        xr.DataArray(p[scored].astype(float), dims="n"),
        xr.DataArray(event[scored].astype(float), dims="n"),
        # Between the levels, where rounding changes nothing.
        thresholds=[0.0, *((np.arange(BINS) + 0.5) / BINS).tolist(), 1.0],
    )
    pofd, pod, area = roc_curve(probability_sums(p, event, scored))
    # Probabilities of 0.99 and of 1 share the last bin.
    assert area == pytest.approx(float(expected["AUC"]), abs=1e-4)
    assert pofd[0] == pod[0] == 0
    assert pofd[-1] == pod[-1] == 1


def test_perfect_and_constant_forecasts():
    event = np.zeros((10, 10), bool)
    event[:3] = True
    scored = np.ones_like(event)
    perfect = probability_sums(event.astype(np.float32), event, scored)
    assert brier_parts(perfect).score == 0
    assert brier_parts(perfect).skill == 1
    assert roc_curve(perfect)[2] == 1
    climate = probability_sums(np.full(event.shape, 0.3, np.float32), event, scored)
    parts = brier_parts(climate)
    assert parts.score == pytest.approx(0.21)
    assert (parts.resolution, parts.skill) == (pytest.approx(0), pytest.approx(0, abs=1e-6))


def test_nothing_scored_gives_no_score():
    p, event, scored = made(5)
    sums = probability_sums(np.full_like(p, np.nan), event, np.zeros_like(scored))
    assert not sums.any()
    assert np.isnan(brier_parts(sums).score)
    assert np.isnan(roc_curve(sums)[2])
    assert np.isnan(reliability_curve(sums)[0]).all()


def test_edges_belong_to_the_bin_above():
    p = (np.arange(BINS + 1) / BINS).astype(np.float32)[np.newaxis]
    sums = probability_sums(p, p > 2, np.ones(p.shape, bool))
    np.testing.assert_array_equal(sums[:, 0], [*(BINS - 1) * [1], 2])


def ensemble_of(seed: int, members: int = 7):
    """Return members and an observation, mostly dry, and a mask of most pixels."""
    rng = np.random.default_rng(seed)
    rain = rng.gamma(0.5, 2.0, (members + 1, 12, 15)).astype(np.float32)
    rain[rain < 0.4] = 0
    return rain[1:], rain[0], rng.random((12, 15)) < 0.9


@given(st.integers(0, 999), st.integers(1, 12), st.sampled_from(["ecdf", "fair"]))
def test_crps_equals_scores(seed, members, method):
    xr = pytest.importorskip("xarray")
    from scores.probability import crps_for_ensemble

    if method == "fair" and members == 1:
        members = 2
    values, observed, scored = ensemble_of(seed, members)
    sums, _ = ensemble_sums(values, observed, scored)
    expected = crps_for_ensemble(
        xr.DataArray(values[:, scored].astype(float), dims=("member", "n")),
        xr.DataArray(observed[scored].astype(float), dims="n"),
        "member",
        method=method,
    )
    score = crps(sums, members if method == "fair" else None)
    assert score == pytest.approx(float(expected), rel=1e-6)


def test_members_are_not_changed():
    values, observed, scored = ensemble_of(3)
    before = values.copy()
    ensemble_sums(values, observed, scored)
    np.testing.assert_array_equal(values, before)


def test_ranks_without_ties_equal_pysteps():
    scores = pytest.importorskip("pysteps.verification.ensscores")
    rng = np.random.default_rng(4)
    values, observed = rng.random((5, 20, 20), np.float32), rng.random((20, 20), np.float32)
    _, ranks = ensemble_sums(values, observed, np.ones(observed.shape, bool))
    expected = scores.rankhist(values.astype(float), observed.astype(float), normalize=False)
    np.testing.assert_allclose(ranks, expected)


def test_ties_count_in_equal_parts():
    values = np.array([0, 0, 0, 2], np.float32).reshape(4, 1, 1)
    _, ranks = ensemble_sums(values, np.zeros((1, 1), np.float32), np.ones((1, 1), bool))
    np.testing.assert_allclose(ranks, [0.25, 0.25, 0.25, 0.25, 0])


@given(st.integers(0, 99))
def test_an_observation_that_is_a_member_has_any_rank(seed):
    values, observed, _ = ensemble_of(seed, 9)
    _, ranks = ensemble_sums(values, observed, np.ones(observed.shape, bool))
    assert ranks.sum() == pytest.approx(observed.size)
    expected = observed.size / len(ranks)
    assert np.abs(ranks - expected).max() < 5 * np.sqrt(expected)


def test_no_pixel_no_score():
    values, observed, scored = ensemble_of(5)
    sums, ranks = ensemble_sums(values, observed, np.zeros_like(scored))
    assert np.isnan(crps(sums))
    assert not ranks.any()
