"""Merging of statistics, the docstring's example, and that metrics are plain data."""

from __future__ import annotations

import doctest
import pickle

import numpy as np
import pytest

from daskdl import metrics
from daskdl.errors import ShapeError
from daskdl.metrics import metric as module

MADE = [
    metrics.Accuracy(),
    metrics.TopKAccuracy(3),
    metrics.BinaryAccuracy(),
    metrics.Precision(),
    metrics.Recall(3),
    metrics.F1(3, "micro"),
    metrics.ROCAUC(),
    metrics.PRAUC(100),
    metrics.MeanAbsoluteError(),
    metrics.MeanSquaredError(),
    metrics.HitRatio(),
    metrics.NDCG(),
    metrics.MeanAveragePrecision(3),
]


@pytest.mark.parametrize("metric", MADE, ids=repr)
def test_they_are_plain_data(metric):
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


def test_the_docstrings_example():
    assert doctest.testmod(module).failed == 0
