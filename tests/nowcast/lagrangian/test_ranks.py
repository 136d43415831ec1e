"""Tests of ranks and matched distributions."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from nowcast.lagrangian.ranks import match, ranks


def test_ranks_are_those_of_a_sort() -> None:
    field = np.random.default_rng(0).normal(size=(70, 90)).astype(np.float32)
    field[:5] = np.nan
    expected = (rankdata(field[5:]).reshape(65, 90) - 0.5) / field[5:].size
    np.testing.assert_allclose(ranks(field)[5:], expected, atol=1e-3)
    assert np.isnan(ranks(field)[:5]).all()


def test_matching_gives_the_other_distribution_in_the_same_order() -> None:
    rng = np.random.default_rng(1)
    field = rng.normal(size=(80, 80)).astype(np.float32)
    reference = np.maximum(rng.normal(size=(80, 80)), 0).astype(np.float32)
    made = match(ranks(field), reference)
    for q in (0.3, 0.6, 0.9, 0.99):
        assert abs(np.quantile(made, q) - np.quantile(reference, q)) < 0.02
    assert (np.diff(made.ravel()[np.argsort(field, axis=None)]) >= 0).all()


def test_nothing_known_stays_unknown() -> None:
    nothing = np.full((4, 5), np.nan, np.float32)
    assert np.isnan(ranks(nothing)).all()
    assert np.isnan(match(ranks(np.ones((4, 5), np.float32)), nothing)).all()
