"""Precision, recall, F1 and intersection over union from the counts of a confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.metrics.metric import (
    Array,
    Metric,
    Statistics,
    amount,
    amounts,
    same_shape,
    scores_and_labels,
    weights_of,
    yes_or_no,
)

#: Names of the statistics.
NAMES = ("true_positive", "false_positive", "false_negative")


@dataclass(frozen=True)
class _Confusion(Metric):
    """True positives, false positives and false negatives of each class.

    Parameters
    ----------
    classes : int, optional
        Number of classes; the prediction is the class with the highest score. By default targets
        are 0 or 1, scores from ``threshold`` on predict 1, and the metric is of class 1.
    average : "macro", "micro" or int
        Mean of the classes' metrics, or the metric of their summed counts, or of one class only.
        A class whose divisor is 0 counts 0.
    threshold : float
    """

    classes: int | None = None
    average: str | int = "macro"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.average not in ("macro", "micro", *range(self.classes or 0)):
            raise SettingsError(
                f"{type(self).__name__}: expected average 'macro' or 'micro', or a class, found "
                f"{self.average!r}"
            )

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Compare scores (..., C) with labels (...), or scores with targets of 0 and 1."""
        if self.classes is None:
            prediction, target = same_shape(self, prediction, target)
            positive, true = prediction >= self.threshold, yes_or_no(self, target)
            weight = weights_of(self, sample_weight, target.shape)
            parts = positive & true, positive & ~true, ~positive & true
            arrays = [amount(part, weight)[None] for part in parts]
        else:
            scores, labels = scores_and_labels(self, prediction, target)
            if scores.shape[1] != self.classes:
                raise ShapeError(
                    f"{type(self).__name__}: expected scores of {self.classes} classes, found "
                    f"{scores.shape[1]}"
                    "; give the metric the model's number of classes"
                )
            best = scores.argmax(1) if len(scores) else labels
            weight = weights_of(self, sample_weight, np.shape(target))
            right, weight = best == labels, None if weight is None else weight.reshape(-1)
            pairs = (labels, right), (best, ~right), (labels, ~right)
            arrays = [_of_classes(of, which, self.classes, weight) for of, which in pairs]
        return dict(zip(NAMES, arrays, strict=True))

    def value(self, statistics: Mapping[str, Array]) -> float:
        """Return the metric."""
        hits, false, missed = (amounts(statistics[name], 1).astype(np.float64) for name in NAMES)
        if self.average == "micro":
            hits, false, missed = (np.atleast_1d(x.sum()) for x in (hits, false, missed))
        elif self.average != "macro":
            one = [int(self.average)]
            hits, false, missed = hits[one], false[one], missed[one]
        above, below = self.quotient(hits, false, missed)
        if not (hits + false + missed).any():
            return float("nan")
        return float(np.mean(np.divide(above, below, out=np.zeros_like(above), where=below > 0)))

    def quotient(self, hits: Array, false: Array, missed: Array) -> tuple[Array, Array]:
        """Return dividend and divisor of the metric."""
        raise NotImplementedError


def _of_classes(labels: Array, which: Array, classes: int, weight: Array | None) -> Array:
    """Return each class's count, or sum of weights, among ``labels[which]``."""
    if weight is None:
        return np.bincount(labels[which], minlength=classes).astype(np.int64)
    return np.stack([amount(which & (labels == c), weight) for c in range(classes)])


@dataclass(frozen=True)
class Precision(_Confusion):
    """Share of a class's predictions that are correct.

    Examples
    --------
    >>> Precision()([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1])
    0.5
    """

    def quotient(self, hits: Array, false: Array, missed: Array) -> tuple[Array, Array]:
        """Return hits over predictions."""
        return hits, hits + false


@dataclass(frozen=True)
class Recall(_Confusion):
    """Share of a class's samples that are predicted as it.

    Examples
    --------
    >>> Recall()([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1])
    0.5
    """

    def quotient(self, hits: Array, false: Array, missed: Array) -> tuple[Array, Array]:
        """Return hits over samples of the class."""
        return hits, hits + missed


@dataclass(frozen=True)
class F1(_Confusion):
    """Harmonic mean of precision and recall.

    Examples
    --------
    >>> F1()([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1])
    0.5
    """

    def quotient(self, hits: Array, false: Array, missed: Array) -> tuple[Array, Array]:
        """Return twice the hits over predictions and samples of the class together."""
        return 2 * hits, 2 * hits + false + missed


@dataclass(frozen=True)
class IoU(_Confusion):
    """Intersection over union (Jaccard index) of predictions and targets of a class.

    Examples
    --------
    >>> IoU()([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1])
    0.3333333333333333
    """

    def quotient(self, hits: Array, false: Array, missed: Array) -> tuple[Array, Array]:
        """Return the hits over the union."""
        return hits, hits + false + missed
