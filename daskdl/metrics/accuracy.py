"""Accuracy: the share of labels with the highest score, or among the k highest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.metrics.metric import (
    Array,
    Metric,
    Statistics,
    amount,
    amounts,
    ratio,
    same_shape,
    scores_and_labels,
    weights_of,
    yes_or_no,
)


class Share(Metric):
    """Base of metrics that are hits over trials."""

    def value(self, statistics: Mapping[str, Array]) -> float:
        """Return the share of hits."""
        return ratio(*(amounts(statistics[name]).item() for name in ("hits", "count")))


@dataclass(frozen=True)
class TopKAccuracy(Share):
    """Share of labels whose score is among the ``k`` highest.

    Among equal scores the lower class ranks higher, as for ``argmax``; NaN ranks highest, but is
    never a hit.

    Examples
    --------
    >>> TopKAccuracy(2)([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]], [0, 1, 1])
    1.0
    """

    k: int = 5

    def __post_init__(self) -> None:
        check_k(self, self.k)

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Compare scores (..., C) with labels (...) from 0."""
        scores, labels = scores_and_labels(self, prediction, target)
        score_of_label = np.take_along_axis(scores, labels[:, None], 1)
        later = np.arange(scores.shape[1]) > labels[:, None]
        below = (scores < score_of_label) | ((scores == score_of_label) & later)
        ranks = scores.shape[1] - 1 - below.sum(1)
        hits = (ranks < self.k) & ~np.isnan(score_of_label[:, 0])
        return hits_of(hits, weights_of(self, sample_weight, np.shape(target)))


@dataclass(frozen=True)
class Accuracy(TopKAccuracy):
    """Share of labels that have the highest score.

    Examples
    --------
    >>> Accuracy()([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]], [0, 1, 1])
    0.6666666666666666
    """

    k: int = 1


@dataclass(frozen=True)
class BinaryAccuracy(Share):
    """Share of targets, 0 or 1, predicted correctly: scores from ``threshold`` on mean 1.

    Examples
    --------
    >>> BinaryAccuracy()([0.9, 0.2, 0.6], [1, 0, 0])
    0.6666666666666666
    """

    threshold: float = 0.5

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Compare scores (...) with targets (...)."""
        prediction, target = same_shape(self, prediction, target)
        correct = (prediction >= self.threshold) == yes_or_no(self, target)
        hits = correct & ~np.isnan(prediction)
        return hits_of(hits.reshape(-1), weights_of(self, sample_weight, target.shape))


def check_k(metric: Metric, k: int) -> None:
    """Raise a SettingsError unless k is at least 1."""
    if k < 1:
        raise SettingsError(
            f"{type(metric).__name__}: expected k >= 1, found {k}; count from 1, the best alone"
        )


def hits_of(hits: Array, weight: Array | None) -> Statistics:
    """Return the statistics of hits (n,); ``weight`` has as many elements."""
    weight = None if weight is None else weight.reshape(-1)
    return {"hits": amount(hits, weight), "count": amount(np.ones_like(hits), weight)}
