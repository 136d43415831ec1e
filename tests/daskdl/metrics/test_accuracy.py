"""Accuracies, and the confusion matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as theirs

from daskdl.errors import SettingsError, ShapeError
from daskdl.metrics import F1, Accuracy, BinaryAccuracy, IoU, Precision, Recall, TopKAccuracy
from tests.daskdl.cuts import check_cuts


@given(data=st.data(), n=st.integers(1, 30), classes=st.integers(2, 6), k=st.integers(1, 7))
def test_labels(data, n, classes, k):
    rng = np.random.default_rng([n, classes])
    scores, labels = rng.normal(size=(n, classes)), rng.integers(0, classes, n)
    found = check_cuts(Accuracy(), scores, labels, data)
    assert found == theirs.accuracy_score(labels, scores.argmax(1))
    best = np.argsort(-scores, axis=1)[:, :k]
    assert check_cuts(TopKAccuracy(k), scores, labels, data) == np.mean(
        [label in row for label, row in zip(labels, best, strict=True)]
    )


@given(data=st.data(), n=st.integers(1, 20), classes=st.integers(1, 4))
def test_equal_scores_are_argmaxs(data, n, classes):
    rng = np.random.default_rng([n, classes])
    scores, labels = rng.integers(0, 2, (n, classes)), rng.integers(0, classes, n)
    found = check_cuts(Accuracy(), scores, labels, data)
    assert found == np.mean(scores.argmax(1) == labels)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    assert TopKAccuracy(2)(scores, labels) == np.mean((order == labels[:, None]).any(1))


def test_positions_of_a_sequence_count_one_by_one():
    scores, labels = np.random.default_rng(0).random((2, 5, 3)), np.arange(10).reshape(2, 5) % 3
    assert Accuracy()(scores, labels) == np.mean(scores.argmax(-1) == labels)


@given(data=st.data(), n=st.integers(1, 30))
def test_yes_and_no(data, n):
    rng = np.random.default_rng(n)
    scores, target = rng.random(n), rng.integers(0, 2, n)
    found = check_cuts(BinaryAccuracy(0.3), scores, target, data)
    assert found == theirs.accuracy_score(target, scores >= 0.3)


def test_nan_is_never_a_hit():
    scores = np.full((3, 2), np.nan)
    assert Accuracy()(scores, np.array([0, 1, 0])) == 0
    assert TopKAccuracy(5)(scores, np.array([0, 1, 0])) == 0
    assert Accuracy()(np.array([[1.0, np.nan]]), np.array([0])) == 0
    assert BinaryAccuracy()(np.array([np.nan, np.nan]), np.array([0, 1])) == 0


def test_nothing_is_nan():
    assert np.isnan(Accuracy()(np.empty((0, 3)), np.empty(0, int)))
    assert np.isnan(BinaryAccuracy()(np.empty(0), np.empty(0)))


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
    """As of a model with auxiliary classifiers in training, whose loss alone takes them all."""
    scores, labels = np.eye(3), np.arange(3)
    found = Accuracy().statistics((scores, 1 - scores, 1 - scores), labels)
    assert Accuracy().value(found) == 1


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
    found = check_cuts(made(classes, average), scores, labels, data)
    right = expected(
        labels, scores.argmax(1), labels=range(classes), average=average, zero_division=0
    )
    assert found == pytest.approx(right, rel=1e-12)


def test_one_class_alone():
    scores, labels = np.eye(3)[[0, 1, 1, 2]], np.array([0, 0, 1, 2])
    assert [IoU(3, average)(scores, labels) for average in (0, 1, 2)] == [0.5, 0.5, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize(("made", "expected"), PAIRS)
@given(data=st.data(), n=st.integers(1, 30))
def test_yes_and_no_confusion(made, expected, data, n):
    rng = np.random.default_rng(n)
    scores, target = rng.random(n), rng.integers(0, 2, n)
    target[0] = 1
    found = check_cuts(made(threshold=0.4), scores, target, data)
    assert found == pytest.approx(expected(target, scores >= 0.4, zero_division=0), rel=1e-12)


def test_nothing_is_nan_confusion():
    assert np.isnan(F1(3)(np.empty((0, 3)), np.empty(0, int)))


def test_mistakes():
    with pytest.raises(SettingsError, match=r"F1: expected average 'macro' .*, found 'all'"):
        F1(3, "all")
    with pytest.raises(ShapeError, match="Recall: expected scores of 4 classes, found 3"):
        Recall(4)(np.zeros((2, 3)), np.zeros(2, int))
