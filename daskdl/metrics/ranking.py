"""Metrics of ranked items: hit ratio and normalised discounted cumulative gain at k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.errors import DataError, ShapeError
from daskdl.metrics.accuracy import Share, check_k, hits_of
from daskdl.metrics.metric import (
    Array,
    MeanOf,
    Statistics,
    mean_statistics,
    scores_and_labels,
    weights_of,
)


def _ranks(scores: Array, labels: Array) -> Array:
    """Return the ranks, from 0, of the target items; each ranks last among equal scores."""
    score_of_label = np.take_along_axis(scores, labels[:, None], 1)
    return scores.shape[1] - 1 - (scores < score_of_label).sum(1)


@dataclass(frozen=True)
class HitRatio(Share):
    """Share of users whose item has one of the ``k`` highest scores.

    X. He et al., Neural Collaborative Filtering, arXiv 1708.05031. An item ranks last among equal
    scores, so that a model with constant scores gains nothing.

    Examples
    --------
    >>> HitRatio(1)([[0.1, 0.9, 0.3]], [1])
    1.0
    """

    k: int = 10

    def __post_init__(self) -> None:
        check_k(self, self.k)

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Compare scores (N, items) with target items (N,)."""
        scores, labels = scores_and_labels(self, prediction, target)
        hits = _ranks(scores, labels) < self.k
        return hits_of(hits, weights_of(self, sample_weight, labels.shape))


@dataclass(frozen=True)
class NDCG(MeanOf):
    """Gains of the ``k`` highest scores, discounted by log2(place + 1), over the largest possible.

    K. Järvelin and J. Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20
    (2002). Among equal scores the less relevant item ranks higher. A sample without relevant items
    counts 0.

    Examples
    --------
    >>> NDCG(2)([[0.1, 0.9, 0.3]], [1])
    1.0
    """

    k: int = 10

    def __post_init__(self) -> None:
        check_k(self, self.k)

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Compare scores (N, items) with target items (N,), or relevances (N, items)."""
        scores, target = np.asarray(prediction), np.asarray(target)
        if scores.ndim == 2 and target.shape == scores.shape:
            gains = self._of_relevances(scores, target)
        else:
            scores, labels = scores_and_labels(self, scores, target)
            ranks = _ranks(scores, labels)
            discounts = _discounts(scores.shape[1])
            gains = np.where(ranks < self.k, discounts[ranks], 0) if len(labels) else np.zeros(0)
        weight = weights_of(self, sample_weight, gains.shape)
        return mean_statistics(gains, weight)

    def _of_relevances(self, scores: Array, relevance: Array) -> Array:
        relevance = relevance.astype(np.float64)
        wrong = relevance[~(relevance >= 0)]
        if wrong.size:
            raise DataError(f"NDCG: expected relevances of 0 and more, found {wrong[0]}")
        n, items = scores.shape
        if not items:
            raise ShapeError(f"NDCG: expected at least 1 item, found shape {scores.shape}")
        order = np.lexsort((relevance, -scores.astype(np.float64)), axis=-1)
        ranked = np.take_along_axis(relevance, order, 1)
        best = -np.sort(-relevance, axis=1)
        # cumsum adds in order, so that a row's sum does not depend on other rows
        discounts = _discounts(items)[: self.k]
        sums = [np.cumsum(x[:, : self.k] * discounts, 1)[:, -1] for x in (ranked, best)]
        return np.divide(sums[0], sums[1], out=np.zeros(n), where=sums[1] > 0)


def _discounts(items: int) -> Array:
    return 1 / np.array([math.log2(place) for place in range(2, items + 2)])
