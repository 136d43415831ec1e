"""Accuracies and the confusion matrix, curves of thresholds, and ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as theirs

from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.metrics import (
    F1,
    NDCG,
    PRAUC,
    ROCAUC,
    Accuracy,
    BinaryAccuracy,
    HitRatio,
    IoU,
    Precision,
    Recall,
    TopKAccuracy,
)
from tests.daskdl.lossmeans import check_cuts


@given(data=st.data(), n=st.integers(1, 30), classes=st.integers(2, 6), k=st.integers(1, 7))
def test_labels(data, n, classes, k):
    rng = np.random.default_rng([n, classes])
    scores, labels = rng.normal(size=(n, classes)), rng.integers(0, classes, n)
    accuracy = check_cuts(Accuracy(), scores, labels, data)
    assert accuracy == theirs.accuracy_score(labels, scores.argmax(1))
    best = np.argsort(-scores, axis=1)[:, :k]
    assert check_cuts(TopKAccuracy(k), scores, labels, data) == np.mean(
        [label in row for label, row in zip(labels, best, strict=True)]
    )


@given(data=st.data(), n=st.integers(1, 20), classes=st.integers(1, 4))
def test_equal_scores_are_ranked_as_by_argmax(data, n, classes):
    rng = np.random.default_rng([n, classes])
    scores, labels = rng.integers(0, 2, (n, classes)), rng.integers(0, classes, n)
    accuracy = check_cuts(Accuracy(), scores, labels, data)
    assert accuracy == np.mean(scores.argmax(1) == labels)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    assert TopKAccuracy(2)(scores, labels) == np.mean((order == labels[:, None]).any(1))


def test_positions_of_a_sequence_count_one_by_one():
    scores, labels = np.random.default_rng(0).random((2, 5, 3)), np.arange(10).reshape(2, 5) % 3
    assert Accuracy()(scores, labels) == np.mean(scores.argmax(-1) == labels)


@given(data=st.data(), n=st.integers(1, 30))
def test_binary_accuracy(data, n):
    rng = np.random.default_rng(n)
    scores, target = rng.random(n), rng.integers(0, 2, n)
    accuracy = check_cuts(BinaryAccuracy(0.3), scores, target, data)
    assert accuracy == theirs.accuracy_score(target, scores >= 0.3)


def test_nan_is_never_a_hit():
    scores = np.full((3, 2), np.nan)
    assert Accuracy()(scores, np.array([0, 1, 0])) == 0
    assert TopKAccuracy(5)(scores, np.array([0, 1, 0])) == 0
    assert Accuracy()(np.array([[1.0, np.nan]]), np.array([0])) == 0
    assert BinaryAccuracy()(np.array([np.nan, np.nan]), np.array([0, 1])) == 0


@pytest.mark.parametrize("metric", [Accuracy(), F1(3), HitRatio(), NDCG(), BinaryAccuracy()])
def test_no_samples_give_nan(metric):
    shape = (0,) if isinstance(metric, BinaryAccuracy) else (0, 3)
    assert np.isnan(metric(np.empty(shape), np.empty(0, int)))


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([0, 3], "Accuracy: expected labels from 0 to 2, found 3"),
        ([0.0, 1.0], r"labels of shape \(2,\) for scores of shape \(2, 3\), found float64 \(2,\)"),
        ([[0, 1]], r"found int64 \(1, 2\)"),
    ],
)
def test_labels_that_do_not_fit(labels, sentence):
    with pytest.raises(ShapeError, match=sentence):
        Accuracy()(np.zeros((2, 3)), np.array(labels))


def test_other_mistakes():
    with pytest.raises(SettingsError, match="TopKAccuracy: expected k >= 1, found 0"):
        TopKAccuracy(0)
    with pytest.raises(ShapeError, match="BinaryAccuracy: expected targets of 0 and 1, found 2"):
        BinaryAccuracy()(np.zeros(3), np.array([0, 1, 2]))


def test_of_several_heads_the_first_counts():
    """A model with auxiliary classifiers gives several in training; only its loss takes all."""
    scores, labels = np.eye(3), np.arange(3)
    statistics = Accuracy().statistics((scores, 1 - scores, 1 - scores), labels)
    assert Accuracy().value(statistics) == 1


PAIRS = [
    (Precision, theirs.precision_score),
    (Recall, theirs.recall_score),
    (F1, theirs.f1_score),
    (IoU, theirs.jaccard_score),
]


@pytest.mark.slow
@pytest.mark.parametrize(("made", "expected"), PAIRS)
@given(
    data=st.data(),
    n=st.integers(1, 30),
    classes=st.integers(2, 6),
    average=st.sampled_from(["macro", "micro"]),
)
def test_classes(made, expected, data, n, classes, average):
    rng = np.random.default_rng([n, classes])
    scores, labels = rng.normal(size=(n, classes)), rng.integers(0, classes, n)
    value = check_cuts(made(classes, average), scores, labels, data)
    reference = expected(
        labels, scores.argmax(1), labels=range(classes), average=average, zero_division=0
    )
    assert value == pytest.approx(reference, rel=1e-12)


def test_one_class_alone():
    scores, labels = np.eye(3)[[0, 1, 1, 2]], np.array([0, 0, 1, 2])
    assert [IoU(3, average)(scores, labels) for average in (0, 1, 2)] == [0.5, 0.5, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize(("made", "expected"), PAIRS)
@given(data=st.data(), n=st.integers(1, 30))
def test_binary_confusion(made, expected, data, n):
    rng = np.random.default_rng(n)
    scores, target = rng.random(n), rng.integers(0, 2, n)
    target[0] = 1
    value = check_cuts(made(threshold=0.4), scores, target, data)
    assert value == pytest.approx(expected(target, scores >= 0.4, zero_division=0), rel=1e-12)


def test_mistakes():
    with pytest.raises(SettingsError, match=r"F1: expected average 'macro' .*, found 'all'"):
        F1(3, "all")
    with pytest.raises(ShapeError, match="Recall: expected scores of 4 classes, found 3"):
        Recall(4)(np.zeros((2, 3)), np.zeros(2, int))


PAIRS_OF_CURVES = [(ROCAUC, theirs.roc_auc_score), (PRAUC, theirs.average_precision_score)]


def draw(n, distinct):
    """Return scores, some of them equal, and targets of both classes."""
    rng = np.random.default_rng([n, distinct])
    target = rng.integers(0, 2, n)
    target[:2] = 0, 1
    scores = np.round(rng.random(n) * distinct) / distinct
    return scores, target


@pytest.mark.parametrize(("made", "expected"), PAIRS_OF_CURVES)
@given(data=st.data(), n=st.integers(2, 40), distinct=st.sampled_from([1, 3, 10, 10**6]))
def test_curves_are_scikit_learns(made, expected, data, n, distinct):
    scores, target = draw(n, distinct)
    value = check_cuts(made(), scores, target, data)
    assert value == pytest.approx(expected(target, scores), rel=1e-12)
    assert made().bounds(made().statistics(scores, target)) == (value, value)


@pytest.mark.slow
@pytest.mark.parametrize(("made", "expected"), PAIRS_OF_CURVES)
@given(
    data=st.data(),
    n=st.integers(2, 40),
    distinct=st.sampled_from([1, 3, 10, 10**6]),
    bins=st.integers(1, 20),
)
def test_bounds_of_bins_contain_the_exact_area(made, expected, data, n, distinct, bins):
    scores, target = draw(n, distinct)
    metric = made(bins)
    value = check_cuts(metric, scores, target, data)
    statistics = metric.statistics(scores, target)
    low, high = metric.bounds(statistics)
    reference = expected(target, scores)
    assert low - 1e-12 <= reference <= high + 1e-12
    assert low <= value <= high
    assert statistics["positive"].size == bins


def test_many_bins_come_close():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 20000)
    scores = rng.beta(2 + target, 3 - target)
    for made, expected in PAIRS_OF_CURVES:
        low, high = made(1000).bounds(made(1000).statistics(scores, target))
        assert high - low < 0.005
        assert low <= expected(target, scores) <= high


def test_float32_and_float64_batches_and_signed_zeros_merge():
    metric = ROCAUC()
    one = metric.statistics(np.array([0.0, 0.5], "f4"), np.array([0, 1]))
    two = metric.statistics(np.array([-0.0, 0.5]), np.array([1, 0]))
    assert metric.value(metric.merge(one, two)) == 0.5


@pytest.mark.parametrize("made", [ROCAUC, PRAUC])
def test_areas_that_are_nan(made):
    assert np.isnan(made()(np.array([0.1, np.nan]), np.array([0, 1])))
    assert np.isnan(made(5)(np.array([0.1, np.nan]), np.array([0, 1])))
    assert np.isnan(made()(np.array([0.1, 0.2]), np.array([0, 0])))
    assert np.isnan(made()(np.empty(0), np.empty(0)))


def test_mistakes_of_curves():
    with pytest.raises(DataError, match=r"ROCAUC: .* from 0 to 1 for bins, found 1\.5"):
        ROCAUC(10)(np.array([0.5, 1.5]), np.array([0, 1]))
    with pytest.raises(SettingsError, match="PRAUC: expected bins >= 1, found 0"):
        PRAUC(0)
    with pytest.raises(ShapeError, match="PRAUC: expected targets of 0 and 1, found -1"):
        PRAUC()(np.zeros(2), np.array([-1, 1]))


@given(
    data=st.data(), n=st.integers(1, 20), items=st.integers(1, 8), k=st.integers(1, 9),
    ties=st.booleans(),
)  # fmt: skip
def test_ranks_of_one_relevant_item(data, n, items, k, ties):
    rng = np.random.default_rng([n, items])
    scores = rng.integers(0, 3, (n, items)) if ties else rng.random((n, items))
    item = rng.integers(0, items, n)
    hits, gains = [], []
    for row, relevant in zip(scores, item, strict=True):
        place = sum(row[i] >= row[relevant] for i in range(items) if i != relevant)
        hits.append(place < k)
        gains.append(1 / np.log2(place + 2) if place < k else 0)
    assert check_cuts(HitRatio(k), scores, item, data) == np.mean(hits)
    assert check_cuts(NDCG(k), scores, item, data) == pytest.approx(np.mean(gains), rel=1e-12)


@given(data=st.data(), n=st.integers(1, 20), items=st.integers(2, 30), k=st.integers(1, 31))
def test_relevances(data, n, items, k):
    rng = np.random.default_rng([n, items])
    scores = rng.random((n, items))
    relevance = rng.integers(0, 4, (n, items)) * rng.integers(0, 2, (n, 1))
    value = check_cuts(NDCG(k), scores, relevance, data)
    assert value == pytest.approx(theirs.ndcg_score(relevance, scores, k=k), rel=1e-12)


def test_equal_scores_rank_before_the_relevant_one():
    scores, relevance = np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0]])
    assert NDCG(3)(scores, relevance) == NDCG(3)(scores, np.array([0])) == 1 / np.log2(4)
    assert HitRatio(2)(scores, np.array([0])) == 0


def test_a_score_that_is_nan_is_no_hit():
    assert HitRatio(1)(np.array([[np.nan, 0.0], [np.nan, 0.0]]), np.array([0, 1])) == 0


def test_mistakes_ranking():
    with pytest.raises(SettingsError, match="HitRatio: expected k >= 1, found 0"):
        HitRatio(0)
    with pytest.raises(DataError, match=r"NDCG: expected relevances of 0 and more, found -1\.0"):
        NDCG()(np.zeros((1, 2)), np.array([[0.0, -1.0]]))


@pytest.mark.parametrize("dtype", ["u1", "?", "i4", "f4"])
def test_scores_may_have_any_dtype(dtype):
    scores = np.array([[0, 0, 0, 1]]).astype(dtype)
    assert NDCG(4)(scores, np.array([[0, 0, 0, 1.0]])) == 1
