"""Metric: statistics of a batch that can be merged, and the value from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, ShapeError
from daskdl.metrics.exactsum import exact_sum, mean_of
from daskdl.names import Named

Array = NDArray[Any]
Statistics = dict[str, Array]


class Metric(Named):
    """A pair of functions: from a batch to statistics, and from statistics to the value.

    The statistics of two batches merge: each array is added, or joined end to end. They are
    integers, or are sorted before use. So the value has the same bits for any split of the samples
    into batches and shards and any order of merging. A metric is plain data without state; many
    workers may use it at the same time.

    Attributes
    ----------
    higher_is_better : bool
        Used by callbacks that look for the best epoch.

    Examples
    --------
    >>> from daskdl.metrics import MeanAbsoluteError
    >>> metric = MeanAbsoluteError()
    >>> first = metric.statistics(np.array([1.0, 2.0]), np.array([0.0, 0.0]))
    >>> second = metric.statistics(np.array([6.0]), np.array([0.0]))
    >>> metric.value(metric.merge(first, second))
    3.0
    """

    higher_is_better: ClassVar[bool] = True

    def joined(self) -> frozenset[str]:
        """Return the names of statistics that are joined end to end; all others are added."""
        return frozenset()

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Return the statistics of a batch, arrays by name.

        Parameters
        ----------
        prediction, target : array (N, ...)
        sample_weight : array (N,), optional
            How often each sample counts; 1 by default. All batches have weights, or none.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define statistics()")

    def value(self, statistics: Mapping[str, Array]) -> float:
        """Return the metric of merged statistics; NaN without samples."""
        raise NotImplementedError(f"{type(self).__name__} has to define value()")

    def merge(self, first: Mapping[str, Array], *others: Mapping[str, Array]) -> Statistics:
        """Return the merged statistics of batches; the inputs are unchanged.

        Raises
        ------
        ShapeError
            When the statistics are of different metrics, or only some have weights.
        """
        for other in others:
            if first.keys() != other.keys():
                raise ShapeError(
                    f"{type(self).__name__}: expected statistics of one metric, found "
                    f"{sorted(first)} and {sorted(other)}"
                )
        joined, merged = self.joined(), {}
        for name, array in first.items():
            arrays = [array, *(other[name] for other in others)]
            if name not in joined and len({a.shape for a in arrays}) > 1:
                raise ShapeError(
                    f"{type(self).__name__}: expected all batches to have sample_weight or none, "
                    f"found {name} of shapes {sorted({a.shape for a in arrays})}"
                    "; give weights with every batch, or with none"
                )
            merged[name] = np.concatenate(arrays) if name in joined else np.asarray(sum(arrays))
        return merged

    def __call__(self, prediction: Any, target: Any, sample_weight: Any = None) -> float:
        """Return the metric of one batch."""
        return self.value(self.statistics(prediction, target, sample_weight))


def ratio(numerator: float, denominator: float) -> float:
    """Return a quotient; NaN for a divisor of 0."""
    return float(numerator / denominator) if denominator else float("nan")


def count(n: int) -> Array:
    """Return a count as a statistic."""
    return np.asarray(n, np.int64)


def weights_of(metric: Metric, sample_weight: Any, shape: tuple[int, ...]) -> Array | None:
    """Return the weight of each element, float64 of ``shape``; None without weights.

    Raises ShapeError unless there is one weight for each sample, the first axis of ``shape``, and
    DataError when a weight is negative or not finite.
    """
    if sample_weight is None:
        return None
    weight, n = np.asarray(sample_weight), shape[:1]
    if weight.shape != n or weight.dtype.kind not in "fiub":
        raise ShapeError(
            f"{type(metric).__name__}: expected sample_weight to have a number for each sample, "
            f"shape {n}, found {weight.dtype} {weight.shape}"
            "; give one weight a sample"
        )
    wrong = weight[~((weight >= 0) & np.isfinite(weight))]
    if wrong.size:
        raise DataError(
            f"{type(metric).__name__}: expected sample_weight of 0 and more, found {wrong[0]}"
            "; leave negative weights out"
        )
    weight = weight.astype(np.float64).reshape(*n, *(1,) * (len(shape) - 1))
    return np.broadcast_to(weight, shape)


def amount(of: Array, weight: Array | None) -> Array:
    """Return the count of true elements, int64 (), or the exact sum of their weights."""
    return count(int(of.sum())) if weight is None else exact_sum(weight[of])


def amounts(statistic: Array, axes: int = 0) -> Array:
    """Return the numbers in a statistic of :func:`amount`, with ``axes`` axes."""
    if statistic.ndim == axes:
        return statistic
    rows = statistic.reshape(-1, statistic.shape[-1])
    return np.reshape([mean_of(row, 1) for row in rows], statistic.shape[:-1])


def mean_statistics(values: Array, weight: Array | None) -> Statistics:
    """Return the statistics for the mean of float64 values; weights have their shape."""
    n = count(values.size) if weight is None else exact_sum(weight)
    return {"sum": exact_sum(values if weight is None else values * weight), "count": n}


class MeanOf(Metric):
    """Base of metrics that are a mean, with statistics of :func:`mean_statistics`."""

    def value(self, statistics: Mapping[str, Array]) -> float:
        """Return the mean, correctly rounded without weights; NaN if a value is."""
        total, n = statistics["sum"], statistics["count"]
        return mean_of(total, int(n)) if not n.ndim else ratio(mean_of(total, 1), mean_of(n, 1))


def first_of(prediction: Any) -> Any:
    """Return a prediction, or the first of a tuple: the others are auxiliary, for the loss."""
    return prediction[0] if isinstance(prediction, tuple) else prediction


def same_shape(metric: Metric, prediction: Any, target: Any) -> tuple[Array, Array]:
    """Return prediction and target as arrays; a ShapeError if their shapes differ."""
    prediction, target = np.asarray(first_of(prediction)), np.asarray(target)
    if prediction.shape != target.shape:
        raise ShapeError(
            f"{type(metric).__name__}: expected a target of the prediction's shape "
            f"{prediction.shape}, found {target.shape}"
            "; reshape it, such as y[:, None] for one number a sample"
        )
    return prediction, target


def scores_and_labels(metric: Metric, prediction: Any, labels: Any) -> tuple[Array, Array]:
    """Return arrays (..., C) and (...) as scores (rows, C) and labels (rows,).

    Raises ShapeError when labels are not integers of shape (...), or not from 0 to C - 1.
    """
    name, labels = type(metric).__name__, np.asarray(labels)
    prediction = np.asarray(first_of(prediction))
    shape = prediction.shape
    if not shape or labels.shape != shape[:-1] or labels.dtype.kind not in "iu":
        raise ShapeError(
            f"{name}: expected integer labels of shape {shape[:-1]} for scores of shape {shape}, "
            f"found {labels.dtype} {labels.shape}"
            "; labels.astype(np.int64) makes whole numbers so, argmax(-1) one-hot rows"
        )
    classes = prediction.shape[-1]
    wrong = labels[(labels < 0) | (labels >= classes)]
    if wrong.size:
        raise ShapeError(
            f"{name}: expected labels from 0 to {classes - 1}, found {wrong.flat[0]}"
            "; count classes from 0, or make the model's last layer wider"
        )
    return prediction.reshape(labels.size, classes), labels.reshape(-1).astype(np.int64)


def yes_or_no(metric: Metric, target: Array) -> Array:
    """Return a target of 0 and 1 as bool; a ShapeError if it has other numbers."""
    wrong = target[(target != 0) & (target != 1)]
    if wrong.size:
        raise ShapeError(
            f"{type(metric).__name__}: expected targets of 0 and 1, found {wrong.flat[0]}"
            "; compare them with a threshold first, y > 0.5"
        )
    return np.asarray(target == 1)
