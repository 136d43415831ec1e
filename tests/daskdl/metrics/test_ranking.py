"""Hit ratio and NDCG by their definitions and against scikit-learn, for any cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as theirs

from daskdl.errors import DataError, SettingsError
from daskdl.metrics import NDCG, HitRatio
from tests.daskdl.cuts import check_cuts


@given(
    data=st.data(), n=st.integers(1, 20), items=st.integers(1, 8), k=st.integers(1, 9),
    ties=st.booleans(),
)  # fmt: skip
def test_one_item_that_counts(data, n, items, k, ties):
    rng = np.random.default_rng([n, items])
    scores = rng.integers(0, 3, (n, items)) if ties else rng.random((n, items))
    item = rng.integers(0, items, n)
    hits, gains = [], []
    for row, right in zip(scores, item, strict=True):
        place = sum(row[i] >= row[right] for i in range(items) if i != right)
        hits.append(place < k)
        gains.append(1 / np.log2(place + 2) if place < k else 0)
    assert check_cuts(HitRatio(k), scores, item, data) == np.mean(hits)
    assert check_cuts(NDCG(k), scores, item, data) == pytest.approx(np.mean(gains), rel=1e-12)


@given(data=st.data(), n=st.integers(1, 20), items=st.integers(2, 30), k=st.integers(1, 31))
def test_relevances(data, n, items, k):
    rng = np.random.default_rng([n, items])
    scores = rng.random((n, items))
    relevance = rng.integers(0, 4, (n, items)) * rng.integers(0, 2, (n, 1))
    found = check_cuts(NDCG(k), scores, relevance, data)
    assert found == pytest.approx(theirs.ndcg_score(relevance, scores, k=k), rel=1e-12)


def test_equal_scores_are_held_against_the_model():
    scores, relevance = np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0]])
    assert NDCG(3)(scores, relevance) == NDCG(3)(scores, np.array([0])) == 1 / np.log2(4)
    assert HitRatio(2)(scores, np.array([0])) == 0


def test_a_score_that_is_nan_is_no_hit():
    assert HitRatio(1)(np.array([[np.nan, 0.0], [np.nan, 0.0]]), np.array([0, 1])) == 0


def test_nothing_is_nan():
    assert np.isnan(HitRatio()(np.empty((0, 3)), np.empty(0, int)))
    assert np.isnan(NDCG()(np.empty((0, 3)), np.empty(0, int)))


def test_mistakes():
    with pytest.raises(SettingsError, match="HitRatio: expected k >= 1, found 0"):
        HitRatio(0)
    with pytest.raises(DataError, match=r"NDCG: expected relevances of 0 and more, found -1\.0"):
        NDCG()(np.zeros((1, 2)), np.array([[0.0, -1.0]]))


@pytest.mark.parametrize("dtype", ["u1", "?", "i4", "f4"])
def test_scores_may_be_of_any_numbers(dtype):
    scores = np.array([[0, 0, 0, 1]]).astype(dtype)
    assert NDCG(4)(scores, np.array([[0, 0, 0, 1.0]])) == 1
