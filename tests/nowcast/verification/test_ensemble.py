"""CRPS and rank histogram: against scores, pysteps and their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import ShapeError
from nowcast.verification.ensemble import crps, ensemble_sums


def made(seed: int, members: int = 7):
    """Members and an observation with much dry, and most pixels scored."""
    rng = np.random.default_rng(seed)
    rain = rng.gamma(0.5, 2.0, (members + 1, 12, 15)).astype(np.float32)
    rain[rain < 0.4] = 0
    return rain[1:], rain[0], rng.random((12, 15)) < 0.9


@given(st.integers(0, 999), st.integers(1, 12), st.sampled_from(["ecdf", "fair"]))
def test_crps_is_that_of_scores(seed: int, members: int, method: str) -> None:
    xr = pytest.importorskip("xarray")
    from scores.probability import crps_for_ensemble

    if method == "fair" and members == 1:
        members = 2
    values, observed, scored = made(seed, members)
    sums, _ = ensemble_sums(values, observed, scored)
    expected = crps_for_ensemble(
        xr.DataArray(values[:, scored].astype(float), dims=("member", "n")),
        xr.DataArray(observed[scored].astype(float), dims="n"),
        "member",
        method=method,
    )
    found = crps(sums, members if method == "fair" else None)
    assert found == pytest.approx(float(expected), rel=1e-6)


def test_crps_without_ties_is_that_of_pysteps() -> None:
    # Where the observation equals a member, as where all is dry, pysteps adds neither term.
    probscores = pytest.importorskip("pysteps.verification.probscores")
    values, observed, scored = made(1)
    noise = np.random.default_rng(0).random((8, *observed.shape), np.float32)
    values, observed = values + noise[1:], observed + noise[0]
    sums, _ = ensemble_sums(values, observed, scored)
    expected = probscores.CRPS(values[:, scored].astype(float), observed[scored].astype(float))
    assert crps(sums) == pytest.approx(expected, rel=1e-6)


def test_crps_of_one_member_is_its_absolute_error() -> None:
    values, observed, scored = made(2, 1)
    sums, _ = ensemble_sums(values, observed, scored)
    assert crps(sums) == pytest.approx(np.abs(values[0] - observed)[scored].mean())


def test_members_are_left_as_they_were() -> None:
    values, observed, scored = made(3)
    before = values.copy()
    ensemble_sums(values, observed, scored)
    np.testing.assert_array_equal(values, before)


def test_ranks_without_ties_are_those_of_pysteps() -> None:
    scores = pytest.importorskip("pysteps.verification.ensscores")
    rng = np.random.default_rng(4)
    values, observed = rng.random((5, 20, 20), np.float32), rng.random((20, 20), np.float32)
    _, ranks = ensemble_sums(values, observed, np.ones(observed.shape, bool))
    expected = scores.rankhist(values.astype(float), observed.astype(float), normalize=False)
    np.testing.assert_allclose(ranks, expected)


def test_ties_count_in_equal_parts() -> None:
    values = np.array([0, 0, 0, 2], np.float32).reshape(4, 1, 1)
    _, ranks = ensemble_sums(values, np.zeros((1, 1), np.float32), np.ones((1, 1), bool))
    np.testing.assert_allclose(ranks, [0.25, 0.25, 0.25, 0.25, 0])


@given(st.integers(0, 99))
def test_an_observation_that_is_a_member_has_any_rank(seed: int) -> None:
    values, observed, _ = made(seed, 9)
    _, ranks = ensemble_sums(values, observed, np.ones(observed.shape, bool))
    assert ranks.sum() == pytest.approx(observed.size)
    expected = observed.size / len(ranks)
    assert np.abs(ranks - expected).max() < 5 * np.sqrt(expected)


def test_no_pixel_no_score() -> None:
    values, observed, scored = made(5)
    sums, ranks = ensemble_sums(values, observed, np.zeros_like(scored))
    assert np.isnan(crps(sums))
    assert not ranks.any()


def test_grids_must_agree() -> None:
    values, observed, scored = made(6)
    with pytest.raises(ShapeError, match=r"found \(7, 12, 15\), \(11, 15\)"):
        ensemble_sums(values, observed[1:], scored)
