"""All metrics add up over cuts; errors of numbers, means of a function and sums are exact."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as theirs

from daskdl import metrics
from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.metrics import Mean, exactsum
from daskdl.metrics.exactsum import exact_sum, mean_of
from tests.daskdl.lossmeans import check_cuts

MADE = [
    metrics.Accuracy(),
    metrics.TopKAccuracy(3),
    metrics.BinaryAccuracy(),
    metrics.Precision(),
    metrics.Recall(3),
    metrics.F1(3, "micro"),
    metrics.IoU(3, 1),
    metrics.ROCAUC(),
    metrics.PRAUC(100),
    metrics.MeanAbsoluteError(),
    metrics.MeanSquaredError(),
    metrics.HitRatio(),
    metrics.NDCG(),
    metrics.MeanAveragePrecision(3),
    metrics.Mean(np.subtract),
    metrics.Output("price", metrics.MeanAbsoluteError()),
]


@pytest.mark.parametrize("metric", MADE, ids=repr)
def test_metrics_pickle_and_hash(metric):
    assert pickle.loads(pickle.dumps(metric)) == metric
    assert hash(metric) == hash(pickle.loads(pickle.dumps(metric)))


def test_every_metric_is_here():
    assert {type(metric).__name__ for metric in MADE} == set(metrics.__all__) - {"Metric"}


def test_statistics_of_another_metric_do_not_merge():
    x = np.zeros(3)
    one = metrics.MeanAbsoluteError().statistics(x, x)
    other = metrics.BinaryAccuracy().statistics(x, x)
    with pytest.raises(ShapeError, match=r"one metric, found \['count', 'sum'\] and \['count', 'h"):
        metrics.MeanAbsoluteError().merge(one, other)


# --- weights of samples


def means(function):
    """Return a function of (target, scores, weights) that averages ``function``'s rows."""
    return lambda y, p, sample_weight: np.average(function(p, y), weights=sample_weight)


BINARY = [
    (metrics.ROCAUC(), theirs.roc_auc_score),
    (metrics.PRAUC(), theirs.average_precision_score),
    (metrics.MeanAbsoluteError(), theirs.mean_absolute_error),
    (metrics.MeanSquaredError(), theirs.mean_squared_error),
    (metrics.Mean(np.subtract), means(np.subtract)),
    (metrics.BinaryAccuracy(), means(lambda p, y: (p >= 0.5) == y)),
    (
        metrics.F1(),
        lambda y, p, sample_weight: theirs.f1_score(y, p >= 0.5, sample_weight=sample_weight),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "expected"), BINARY, ids=lambda x: type(x).__name__)
@given(data=st.data(), n=st.integers(2, 30), distinct=st.sampled_from([2, 10**6]))
def test_weights_are_scikit_learns_for_any_cut(metric, expected, data, n, distinct):
    rng = np.random.default_rng([n, distinct])
    target, weight = rng.integers(0, 2, n), rng.lognormal(0, 3, n)
    target[:2] = 0, 1
    scores = np.round(rng.random(n) * distinct) / distinct
    value = check_cuts(metric, scores, target, data, weight)
    assert value == pytest.approx(expected(target, scores, sample_weight=weight), rel=1e-9)


def macro(function):
    return lambda y, p, sample_weight: function(
        y,
        p.argmax(1),
        labels=[0, 1, 2],
        average="macro",
        sample_weight=sample_weight,
        zero_division=0,
    )


CLASSES = [
    (metrics.Accuracy(), means(lambda p, y: p.argmax(1) == y)),
    (metrics.HitRatio(1), means(lambda p, y: p.argmax(1) == y)),
    (metrics.NDCG(3), means(lambda p, y: 1 / np.log2((p > p[range(len(y)), y, None]).sum(1) + 2))),
    (metrics.Precision(3), macro(theirs.precision_score)),
    (metrics.Recall(3), macro(theirs.recall_score)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "expected"), CLASSES, ids=lambda x: type(x).__name__)
@given(data=st.data(), n=st.integers(1, 30))
def test_weights_of_classes_are_scikit_learns_for_any_cut(metric, expected, data, n):
    rng = np.random.default_rng(n)
    scores, labels, weight = rng.random((n, 3)), rng.integers(0, 3, n), rng.lognormal(0, 3, n)
    value = check_cuts(metric, scores, labels, data, weight)
    assert value == pytest.approx(expected(labels, scores, sample_weight=weight), rel=1e-9)


def test_a_weight_counts_for_all_elements_of_its_sample():
    a, b, weight = np.ones((2, 3)), np.array([[1, 1, 1], [0, 0, 1]]), np.array([1, 3])
    assert metrics.BinaryAccuracy()(a, b, weight) == (3 + 3) / 12
    assert metrics.MeanAbsoluteError()(a, b, weight) == 6 / 12


def test_weights_that_do_not_fit():
    metric, x = metrics.MeanAbsoluteError(), np.zeros((3, 2))
    with pytest.raises(ShapeError, match=r"sample_weight .* shape \(3,\), found int64 \(2,\)"):
        metric(x, x, np.array([1, 2]))
    for wrong in (-1.0, np.nan, np.inf):
        with pytest.raises(DataError, match="sample_weight of 0 and more, found"):
            metric(x, x, np.array([1, wrong, 2]))
    with pytest.raises(ShapeError, match="all batches to have sample_weight or none, found "):
        metric.merge(metric.statistics(x, x), metric.statistics(x, x, np.ones(3)))
    with pytest.raises(SettingsError, match=r"ROCAUC: expected no bins .* found bins=10"):
        metrics.ROCAUC(10)(x[:, 0], x[:, 0], np.ones(3))
    with pytest.raises(SettingsError, match="images without sample_weight"):
        metrics.MeanAveragePrecision(3)([], [], np.ones(0))


PAIRS = [
    (metrics.MeanAbsoluteError(), theirs.mean_absolute_error),
    (metrics.MeanSquaredError(), theirs.mean_squared_error),
]


@pytest.mark.parametrize(("metric", "expected"), PAIRS)
@given(data=st.data(), n=st.integers(1, 30), dtype=st.sampled_from(["f4", "f8"]))
def test_any_cut_gives_scikit_learns_value(metric, expected, data, n, dtype):
    a, b = np.random.default_rng(n).lognormal(0, 3, (2, n, 3)).astype(dtype)
    value = check_cuts(metric, a, b, data)
    assert value == pytest.approx(expected(b.astype("f8"), a.astype("f8")), rel=1e-12)


@pytest.mark.parametrize(("metric", "expected"), PAIRS)
def test_missing_numbers_and_no_samples_give_nan(metric, expected):
    assert np.isnan(metric(np.array([1.0, np.nan]), np.ones(2)))
    assert np.isnan(metric(np.empty((0, 3)), np.empty((0, 3))))
    with pytest.raises(ShapeError, match=r"Error: .* shape \(3, 1\), found \(3,\)"):
        metric(np.zeros((3, 1)), np.zeros(3))


@given(data=st.data(), n=st.integers(1, 30))
def test_a_mean_is_the_same_for_any_cut(data, n):
    a, b = np.random.default_rng(n).normal(size=(2, n, 3)).astype("f4")
    value = check_cuts(Mean(lambda p, y: np.abs(p - y).max(1)), a, b, data)
    assert value == pytest.approx(np.abs(a - b).max(1).astype("f8").mean(), rel=1e-12)


def test_a_mean_needs_a_number_for_each_sample():
    with pytest.raises(
        ShapeError, match=r"Mean: expected mean to .* 4 samples, found float64 \(\)"
    ):
        Mean(mean)(np.zeros(4), np.zeros(4))


def mean(prediction, target):
    return np.mean(prediction - target)


def test_higher_is_better_is_an_option_of_a_mean():
    assert not Mean(np.subtract).higher_is_better
    assert Mean(np.subtract, higher_is_better=True).higher_is_better


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(values=st.lists(FINITE, min_size=1, max_size=30), n=st.integers(1, 1000))
def test_the_mean_is_the_nearest_float(values, n):
    exact = sum(Fraction(v) for v in values) / n
    try:
        expected = float(exact)
    except OverflowError:
        expected = math.copysign(math.inf, exact)
    assert mean_of(exact_sum(values), n) == expected


@given(values=st.lists(FINITE, max_size=20), at=st.integers(0, 20))
def test_parts_add_up(values, at):
    whole = exact_sum(values)
    parts = exact_sum(values[at:]) + exact_sum(values[:at])
    assert mean_of(parts, 7) == mean_of(whole, 7)


def test_extremes_and_numbers_that_cancel():
    values = [1e308, 5e-324, -1e308, 1.0, -1.0]
    assert mean_of(exact_sum(values), 1) == 5e-324
    assert mean_of(exact_sum([1e308] * 4), 2) == math.inf
    assert mean_of(exact_sum([1e308] * 4), 4) == 1e308


def test_more_than_a_block_and_arrays_that_are_added_often():
    values = np.random.default_rng(0).normal(size=exactsum.BLOCK + 10)
    total = exact_sum(values)
    assert mean_of(total, 1) == math.fsum(values)
    assert mean_of(total * 1000, 1000) == math.fsum(values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, np.inf], np.inf),
        ([-np.inf, 3.0], -np.inf),
        ([np.inf, -np.inf], np.nan),
        ([np.nan, 1.0], np.nan),
        ([np.nan, np.inf], np.nan),
    ],
)
def test_sums_that_are_not_finite(values, expected):
    np.testing.assert_equal(mean_of(exact_sum(values), 2), expected)


def test_sums_of_nothing():
    assert mean_of(exact_sum([]), 3) == 0
    assert math.isnan(mean_of(exact_sum([]), 0))
