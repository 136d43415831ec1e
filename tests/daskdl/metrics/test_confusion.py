"""Precision, recall and F1 against scikit-learn, for any cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as theirs

from daskdl.errors import SettingsError, ShapeError
from daskdl.metrics import F1, Precision, Recall
from tests.daskdl.cuts import check_cuts

PAIRS = [
    (Precision, theirs.precision_score),
    (Recall, theirs.recall_score),
    (F1, theirs.f1_score),
]


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


@pytest.mark.parametrize(("made", "expected"), PAIRS)
@given(data=st.data(), n=st.integers(1, 30))
def test_yes_and_no(made, expected, data, n):
    rng = np.random.default_rng(n)
    scores, target = rng.random(n), rng.integers(0, 2, n)
    target[0] = 1
    found = check_cuts(made(threshold=0.4), scores, target, data)
    assert found == pytest.approx(expected(target, scores >= 0.4, zero_division=0), rel=1e-12)


def test_nothing_is_nan():
    assert np.isnan(F1(3)(np.empty((0, 3)), np.empty(0, int)))


def test_mistakes():
    with pytest.raises(SettingsError, match="F1: expected average 'macro' or 'micro', found 'all'"):
        F1(3, "all")
    with pytest.raises(ShapeError, match="Recall: expected scores of 4 classes, found 3"):
        Recall(4)(np.zeros((2, 3)), np.zeros(2, int))
