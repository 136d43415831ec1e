"""Metric: statistics of a batch that can be merged, and the value that they come to."""

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

    The statistics of two batches merge into those of both: each array is added, or joined end to
    end. They are integers, or are sorted before they are used, so that the value is the same to the
    last bit for any cut of the samples into batches and shards and any order of merging. A metric
    is plain data without state of its own and may be used by many workers at once.

    Attributes
    ----------
    higher_is_better : bool
        What a callback that looks for the best epoch takes for it.

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
        """Return the metric of all batches whose statistics were merged; NaN of no samples."""
        raise NotImplementedError(f"{type(self).__name__} has to define value()")

    def merge(self, first: Mapping[str, Array], *others: Mapping[str, Array]) -> Statistics:
        """Return the statistics of batches together; none of them is changed.

        Raises
        ------
        ShapeError
            When they are not statistics of the same metric.
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
    """Divide; NaN by zero, for what has no samples."""
    return float(numerator / denominator) if denominator else float("nan")


def count(n: int) -> Array:
    """Return a number of things as a statistic."""
    return np.asarray(n, np.int64)


def weights_of(metric: Metric, sample_weight: Any, shape: tuple[int, ...]) -> Array | None:
    """Return the weight of each of the samples' elements, float64 of ``shape``; None without.

    Raises ShapeError unless there is one for each sample, the first axis of ``shape``, and
    DataError when one is negative or not finite.
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
    """Return the number of trues as a statistic: int64 (), or the exact sum of their weights."""
    return count(int(of.sum())) if weight is None else exact_sum(weight[of])


def amounts(statistic: Array, axes: int = 0) -> Array:
    """Return numbers of which a statistic of so many axes is the :func:`amount`."""
    if statistic.ndim == axes:
        return statistic
    rows = statistic.reshape(-1, statistic.shape[-1])
    return np.reshape([mean_of(row, 1) for row in rows], statistic.shape[:-1])


def mean_statistics(values: Array, weight: Array | None) -> Statistics:
    """Return the statistic for the mean of float64 values of the weights' shape."""
    n = count(values.size) if weight is None else exact_sum(weight)
    return {"sum": exact_sum(values if weight is None else values * weight), "count": n}


class MeanOf(Metric):
    """Base of metrics that are a mean, whose statistics are :func:`mean_statistics`."""

    def value(self, statistics: Mapping[str, Array]) -> float:
        """Return the mean, NaN where a value is; correctly rounded without weights."""
        total, n = statistics["sum"], statistics["count"]
        return mean_of(total, int(n)) if not n.ndim else ratio(mean_of(total, 1), mean_of(n, 1))


def first_of(prediction: Any) -> Any:
    """Return a prediction, the first of several: others are of auxiliary heads, for the loss."""
    return prediction[0] if isinstance(prediction, tuple) else prediction


def same_shape(metric: Metric, prediction: Any, target: Any) -> tuple[Array, Array]:
    """Return both as arrays; a ShapeError unless they have one shape."""
    prediction, target = np.asarray(first_of(prediction)), np.asarray(target)
    if prediction.shape != target.shape:
        raise ShapeError(
            f"{type(metric).__name__}: expected a target of the prediction's shape "
            f"{prediction.shape}, found {target.shape}"
            "; reshape it, such as y[:, None] for one number a sample"
        )
    return prediction, target


def scores_and_labels(metric: Metric, prediction: Any, labels: Any) -> tuple[Array, Array]:
    """Return scores (rows, C) and labels (rows,) of arrays (..., C) and (...).

    Raises ShapeError when labels are not integers of the leading shape, or not from 0 to C - 1.
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
    """Return a target of 0 and 1 as bool; raise ShapeError when there is any other number in it."""
    wrong = target[(target != 0) & (target != 1)]
    if wrong.size:
        raise ShapeError(
            f"{type(metric).__name__}: expected targets of 0 and 1, found {wrong.flat[0]}"
            "; compare them with a threshold first, y > 0.5"
        )
    return np.asarray(target == 1)
