"""Losses of two or three embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.nn.losses.loss import Loss, OperationLoss, parts
from daskdl.ops import losses as ops
from daskdl.ops.linear import linear
from daskdl.ops.norm.norms import normalize
from daskdl.ops.shape.shape import concatenate
from daskdl.tensor import Tensor

__all__ = [
    "CosineEmbeddingLoss",
    "MarginRankingLoss",
    "MultipleNegativesLoss",
    "TripletMarginLoss",
]


class MarginRankingLoss(OperationLoss, operation=ops.margin_ranking, several=2):
    """Ranking of two scores: the shortfall of the larger one to the other plus a margin.

    Compares (first, second) with a target of 1 and -1, three arrays of one shape.

    Examples
    --------
    >>> better, worse = np.array([2.0], np.float32), np.array([1.5], np.float32)
    >>> float(nn.MarginRankingLoss(margin=1.0)((better, worse), np.array([1])))
    0.5
    """

    def __init__(self, margin: float = 0.0) -> None:
        self.margin = margin


class CosineEmbeddingLoss(OperationLoss, operation=ops.cosine_embedding, several=2):
    """1 - cos where t is 1; what the cosine is above a margin where it is -1.

    Compares (first, second), arrays (N, D), with a target (N,) of 1 and -1.

    Examples
    --------
    >>> x = np.array([[1.0, 0.0]], np.float32)
    >>> float(nn.CosineEmbeddingLoss()((x, x), np.array([1])))
    0.0
    >>> float(nn.CosineEmbeddingLoss()((x, x), np.array([-1])))
    1.0
    """

    def __init__(self, margin: float = 0.0) -> None:
        self.margin = margin


class TripletMarginLoss(Loss):
    """Triplets: the anchor's distance to the positive less that to the negative, plus a margin.

    Parameters
    ----------
    margin : float
    p : float
        Of the norm that distances are.
    swap : bool
        Whether the negative's distance is that to the anchor or to the positive, the lesser.

    Examples
    --------
    >>> near, far = np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)
    >>> round(float(nn.TripletMarginLoss(margin=2.0)((near, near, far))), 4)
    0.5858
    """

    def __init__(self, margin: float = 1.0, p: float = 2.0, swap: bool = False) -> None:
        self.margin = margin
        self.p = p
        self.swap = swap

    def forward(self, prediction: Any, target: Any = None, sample_weight: Any = None) -> Tensor:
        """Compare (anchor, positive, negative), arrays (N, D); there is no target."""
        return ops.triplet(
            *parts(self, prediction, 3),
            margin=self.margin,
            p=self.p,
            swap=self.swap,
            sample_weight=sample_weight,
        )


class MultipleNegativesLoss(Loss):
    """Cross-entropy of finding each anchor's positive among those of all samples, by the cosine.

    M. Henderson et al., arXiv 1705.00652. The other samples are all of the batch, those of other
    shards and workers too: in a fit all predictions are computed and gathered before the gradient,
    so that an iteration has a forward pass more (L. Gao et al., arXiv 2101.06983).

    Parameters
    ----------
    scale : float
        What cosines are multiplied with.

    Examples
    --------
    >>> x = np.eye(3, dtype=np.float32)
    >>> round(float(nn.MultipleNegativesLoss(scale=2.0)((x, x))), 4)
    0.2395
    """

    whole_batch = True

    def __init__(self, scale: float = 20.0) -> None:
        self.scale = scale

    def forward(
        self, prediction: Any, target: Any = None, sample_weight: Any = None, others: Any = None
    ) -> Tensor:
        """Compare (anchor, positive), arrays (N, D); there is no target.

        Raises
        ------
        SettingsError
            When samples have weights: those of other shards are not known.
        """
        if sample_weight is not None:
            raise SettingsError(
                "MultipleNegativesLoss: expected samples without weights, found sample_weight; "
                "leave it out"
            )
        both = parts(self, prediction, 2)
        of_shard = both[0].shape[0]
        if others is not None:
            before, behind = others
            both = tuple(
                concatenate(*(b[i] for b in before), part, *(b[i] for b in behind), axis=0)
                for i, part in enumerate(both)
            )
        anchor, positive = (normalize(part, eps=1e-12) for part in both)
        scores = linear(anchor, positive, None) * self.scale
        n = scores.shape[0]
        loss: Tensor = ops.cross_entropy(scores, np.arange(n))
        if others is not None:
            # All shards compute the same loss, and each the gradients of its own samples, which are
            # weighted by their number: the value stays, and the gradient is that of the whole.
            loss = loss * (n / of_shard) + float(loss) * (1 - n / of_shard)
        return loss
