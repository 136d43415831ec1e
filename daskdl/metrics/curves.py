"""Areas under curves over all thresholds: receiver operating characteristic, precision-recall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.errors import DataError, SettingsError
from daskdl.metrics.metric import (
    Array,
    Metric,
    Statistics,
    count,
    ratio,
    same_shape,
    weights_of,
    yes_or_no,
)


@dataclass(frozen=True)
class _Curve(Metric):
    """Counts of positives and negatives by score.

    Parameters
    ----------
    bins : int, optional
        Number of intervals for scores, which must be from 0 to 1; scores in one interval count as
        equal. The statistics then have this size for any number of samples, and :meth:`bounds`
        limits the exact area. By default all distinct scores are kept, and the area is exact.
    """

    bins: int | None = None

    def __post_init__(self) -> None:
        if self.bins is not None and self.bins < 1:
            raise SettingsError(f"{type(self).__name__}: expected bins >= 1, found {self.bins}")

    def joined(self) -> frozenset[str]:
        """Return the names of statistics that are joined: scores and their counts, without bins."""
        return frozenset({"scores", "positive", "negative"} if self.bins is None else ())

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Compare scores (...) with targets (...) of 0 and 1."""
        prediction, target = same_shape(self, prediction, target)
        scores, true = prediction.reshape(-1), yes_or_no(self, target).reshape(-1)
        known = ~np.isnan(scores)
        nan = count(int((~known).sum()))
        weight = weights_of(self, sample_weight, prediction.shape)
        scores, true = scores[known], true[known]
        if weight is not None:
            if self.bins is not None:
                raise SettingsError(
                    f"{type(self).__name__}: expected no bins for samples with sample_weight, "
                    f"found bins={self.bins}"
                    "; leave bins out, or the weights"
                )
            # Weights are added only when all are known: sums of floats depend on their order.
            weight_of = weight.reshape(-1)[known]
            weights = {"positive": weight_of * true, "negative": weight_of * ~true}
            return {"scores": scores.astype(np.float64), **weights, "nan": nan}
        if self.bins is None:
            values, positive, negative = _by_score(scores.astype(np.float64), true, ~true)
            return {"scores": values, "positive": positive, "negative": negative, "nan": nan}
        wrong = scores[(scores < 0) | (scores > 1)]
        if wrong.size:
            raise DataError(
                f"{type(self).__name__}: expected scores from 0 to 1 for bins, found {wrong[0]}"
                "; apply a sigmoid to logits, or leave bins out"
            )
        at = np.minimum((scores.astype(np.float64) * self.bins).astype(np.int64), self.bins - 1)
        positive, negative = (np.bincount(at[x], minlength=self.bins) for x in (true, ~true))
        return {"positive": positive, "negative": negative, "nan": nan}

    def value(self, statistics: Mapping[str, Array]) -> float:
        """Return the area; NaN without positives or negatives, or if any score was NaN."""
        return float("nan") if statistics["nan"] else self._areas(*self._counts(statistics))[1]

    def bounds(self, statistics: Mapping[str, Array]) -> tuple[float, float]:
        """Return the lower and upper bound of the exact area, without bins."""
        if statistics["nan"]:
            return float("nan"), float("nan")
        low, middle, high = self._areas(*self._counts(statistics))
        return (middle, middle) if self.bins is None else (low, high)

    def _counts(self, statistics: Mapping[str, Array]) -> tuple[Array, Array]:
        """Return positives and negatives of each score or bin, highest scores first."""
        positive, negative = statistics["positive"], statistics["negative"]
        if self.bins is None:
            _, positive, negative = _by_score(statistics["scores"], positive, negative)
        return positive[::-1], negative[::-1]

    def _areas(self, positive: Array, negative: Array) -> tuple[float, float, float]:
        """Return the areas if, in each bin, negatives rank first, tie, or rank last."""
        raise NotImplementedError


def _by_score(scores: Array, positive: Array, negative: Array) -> tuple[Array, Array, Array]:
    """Return the distinct scores in order, and the positives and negatives of each."""
    if positive.dtype.kind == "f":  # one order of additions for any order of samples
        order = np.lexsort((negative, positive, scores))
        scores, positive, negative = scores[order], positive[order], negative[order]
    values, at = np.unique(scores, return_inverse=True)
    counts = []
    for numbers in (positive, negative):
        kind = np.float64 if numbers.dtype.kind == "f" else np.int64
        total = np.zeros(len(values), kind)
        np.add.at(total, at, numbers.astype(kind))
        counts.append(total)
    return values, counts[0], counts[1]


@dataclass(frozen=True)
class ROCAUC(_Curve):
    """Share of pairs of a positive and a negative in which the positive has the higher score.

    Equal scores count one half. This is the area under the receiver operating characteristic.

    Examples
    --------
    >>> ROCAUC()([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1])
    0.75
    """

    def _areas(self, positive: Array, negative: Array) -> tuple[float, float, float]:
        below = negative.sum() - np.cumsum(negative)
        least, equal = (positive * below).sum().item(), (positive * negative).sum().item()
        pairs = positive.sum().item() * negative.sum().item()
        return (
            ratio(least, pairs),
            ratio(2 * least + equal, 2 * pairs),
            ratio(least + equal, pairs),
        )


@dataclass(frozen=True)
class PRAUC(_Curve):
    """Average precision: the mean over positives of the precision at their score.

    This is the area under the step curve of precision over recall. Interpolation would give too
    large an area (J. Davis and M. Goadrich, The Relationship Between Precision-Recall and ROC
    Curves, ICML 2006). NaN without positives.

    Examples
    --------
    >>> round(PRAUC()([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1]), 3)
    0.833
    """

    def _areas(self, positive: Array, negative: Array) -> tuple[float, float, float]:
        true, false = np.cumsum(positive), np.cumsum(negative)
        some = positive > 0
        positive, negative, true, false = (x[some] for x in (positive, negative, true, false))
        if not len(positive):
            return (float("nan"),) * 3
        before = true - positive + 1
        precisions = (
            before / (before + false),  # the first positive after all negatives
            true / (true + false),
            true / (true + false - negative),  # all positives before any negative
        )
        low, middle, high = (float((positive * p).sum() / true[-1]) for p in precisions)
        return low, middle, high
