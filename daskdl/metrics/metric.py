"""Metric: statistics of a batch that can be merged, and the value that they come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import ShapeError

Array = NDArray[Any]
Statistics = dict[str, Array]


class Metric:
    """A pair of functions: from a batch to statistics, and from statistics to the value.

    The statistics of two batches merge into those of both: each array is added, or joined end to
    end. They are integers, or are sorted before they are used, so that the value is the same to the
    last bit for any cut of the samples into batches and shards and any order of merging. A metric
    is plain data without state of its own and may be used by many workers at once.

    Examples
    --------
    >>> from daskdl.metrics import MeanAbsoluteError
    >>> metric = MeanAbsoluteError()
    >>> first = metric.statistics(np.array([1.0, 2.0]), np.array([0.0, 0.0]))
    >>> second = metric.statistics(np.array([6.0]), np.array([0.0]))
    >>> metric.value(metric.merge(first, second))
    3.0
    """

    def joined(self) -> frozenset[str]:
        """Return the names of statistics that are joined end to end; all others are added."""
        return frozenset()

    def statistics(self, prediction: Any, target: Any) -> Statistics:
        """Return what has to be known of a batch, arrays by name."""
        raise NotImplementedError(f"{type(self).__name__} has to define statistics()")

    def value(self, statistics: Mapping[str, Array]) -> float:
        """Return the metric of all batches whose statistics were merged; NaN of no samples."""
        raise NotImplementedError(f"{type(self).__name__} has to define value()")

    def merge(self, first: Mapping[str, Array], second: Mapping[str, Array]) -> Statistics:
        """Return the statistics of two batches together; neither is changed.

        Raises
        ------
        ShapeError
            When they are not statistics of the same metric.
        """
        if first.keys() != second.keys():
            raise ShapeError(
                f"{type(self).__name__}: expected statistics of one metric, found "
                f"{sorted(first)} and {sorted(second)}"
            )
        joined = self.joined()
        return {
            name: np.concatenate([first[name], second[name]])
            if name in joined
            else np.asarray(first[name] + second[name])
            for name in first
        }

    def __call__(self, prediction: Any, target: Any) -> float:
        """Return the metric of one batch."""
        return self.value(self.statistics(prediction, target))


def ratio(numerator: float, denominator: float) -> float:
    """Divide; NaN by zero, for what has no samples."""
    return float(numerator / denominator) if denominator else float("nan")


def count(n: int) -> Array:
    """Return a number of things as a statistic."""
    return np.asarray(n, np.int64)


def same_shape(metric: Metric, prediction: Any, target: Any) -> tuple[Array, Array]:
    """Return both as arrays; a ShapeError unless they have one shape."""
    prediction, target = np.asarray(prediction), np.asarray(target)
    if prediction.shape != target.shape:
        raise ShapeError(
            f"{type(metric).__name__}: expected a target of the prediction's shape "
            f"{prediction.shape}, found {target.shape}"
        )
    return prediction, target


def scores_and_labels(metric: Metric, prediction: Any, labels: Any) -> tuple[Array, Array]:
    """Return scores (rows, C) and labels (rows,) of arrays (..., C) and (...).

    Raises
    ------
    ShapeError
        When the labels are not integers of the leading shape, or one is not from 0 to C - 1.
    """
    name, prediction, labels = type(metric).__name__, np.asarray(prediction), np.asarray(labels)
    shape = prediction.shape
    if not shape or labels.shape != shape[:-1] or labels.dtype.kind not in "iu":
        raise ShapeError(
            f"{name}: expected integer labels of shape {shape[:-1]} for scores of shape {shape}, "
            f"found {labels.dtype} {labels.shape}"
        )
    classes = prediction.shape[-1]
    wrong = labels[(labels < 0) | (labels >= classes)]
    if wrong.size:
        raise ShapeError(f"{name}: expected labels from 0 to {classes - 1}, found {wrong.flat[0]}")
    return prediction.reshape(labels.size, classes), labels.reshape(-1).astype(np.int64)


def yes_or_no(metric: Metric, target: Array) -> Array:
    """Return a target of 0 and 1 as bool; a ShapeError when there is any other number in it."""
    wrong = target[(target != 0) & (target != 1)]
    if wrong.size:
        raise ShapeError(
            f"{type(metric).__name__}: expected targets of 0 and 1, found {wrong.flat[0]}"
        )
    return np.asarray(target == 1)
