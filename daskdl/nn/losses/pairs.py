"""Losses of margins between scores, and of two or three embeddings."""

from __future__ import annotations

from collections.abc import Sequence
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
    "HingeEmbeddingLoss",
    "HingeLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiMarginLoss",
    "MultipleNegativesLoss",
    "SoftMarginLoss",
    "TripletMarginLoss",
]


class MultiMarginLoss(OperationLoss, operation=ops.multi_margin):
    """Hinge of several classes: excess of wrong classes' scores over the right one's minus margin.

    Compares scores (N, C) with labels (N,).

    Parameters
    ----------
    p : 1 or 2
        Power of the excess.
    margin : float
    weight : numbers (C,), optional
        Weight of each label.

    Examples
    --------
    >>> float(nn.MultiMarginLoss()(np.array([[0.8, 0.3, -1.0]]), np.array([0])).data.round(4))
    0.1667
    """

    p: int = 1
    margin: float = 1.0
    weight: Sequence[float] | None = None


class MultiLabelMarginLoss(OperationLoss, operation=ops.multilabel_margin):
    """Hinge of several labels: excess of wrong classes' scores over each right one's minus 1.

    Compares scores (N, C) with labels (N, K), each row ended by -1.

    Examples
    --------
    >>> scores = np.array([[0.1, 0.2, 0.4, 0.8]], np.float32)
    >>> round(float(nn.MultiLabelMarginLoss()(scores, np.array([[3, 0, -1, 1]]))), 4)
    0.85
    """


class HingeLoss(OperationLoss, operation=ops.hinge):
    """max(0, margin - t x), or its square.

    Examples
    --------
    >>> loss = nn.HingeLoss()
    >>> round(float(loss(np.array([0.8, -0.3], np.float32), np.array([1.0, -1.0], np.float32))), 4)
    0.45
    """

    margin: float = 1.0
    squared: bool = False


class SoftMarginLoss(OperationLoss, operation=ops.soft_margin):
    """log(1 + exp(-t x)).

    Examples
    --------
    >>> loss = nn.SoftMarginLoss()
    >>> round(float(loss(np.array([0.8, -0.3], np.float32), np.array([1.0, -1.0], np.float32))), 4)
    0.4627
    """


class HingeEmbeddingLoss(OperationLoss, operation=ops.hinge_embedding):
    """A distance where t is 1; its shortfall below the margin where t is -1.

    Examples
    --------
    >>> loss = nn.HingeEmbeddingLoss()
    >>> round(float(loss(np.array([0.8, -0.3], np.float32), np.array([1.0, -1.0], np.float32))), 4)
    1.05
    """

    margin: float = 1.0


class MarginRankingLoss(OperationLoss, operation=ops.margin_ranking, several=2):
    """Ranking of two scores: the better one's shortfall below the worse one plus a margin.

    Compares (first, second) with a target, 1 if the first is better, else -1; all of one shape.

    Examples
    --------
    >>> better, worse = np.array([2.0], np.float32), np.array([1.5], np.float32)
    >>> float(nn.MarginRankingLoss(margin=1.0)((better, worse), np.array([1])))
    0.5
    """

    margin: float = 0.0


class CosineEmbeddingLoss(OperationLoss, operation=ops.cosine_embedding, several=2):
    """1 - cos where t is 1; the cosine's excess over a margin where t is -1.

    Compares (first, second), arrays (N, D), with a target (N,) of 1 and -1.

    Examples
    --------
    >>> x = np.array([[1.0, 0.0]], np.float32)
    >>> float(nn.CosineEmbeddingLoss()((x, x), np.array([1])))
    0.0
    >>> float(nn.CosineEmbeddingLoss()((x, x), np.array([-1])))
    1.0
    """

    margin: float = 0.0


class TripletMarginLoss(OperationLoss, operation=ops.triplet, several=3, targets=0):
    """Triplets: the anchor's distance to the positive minus that to the negative, plus a margin.

    A prediction is (anchor, positive, negative), arrays (N, D); there is no target.

    Parameters
    ----------
    margin : float
    p : float
        Order of the norm of distances.
    swap : bool
        Whether the smaller distance of the negative counts, to the anchor or to the positive.

    Examples
    --------
    >>> near, far = np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)
    >>> round(float(nn.TripletMarginLoss(margin=2.0)((near, near, far))), 4)
    0.5858
    """

    margin: float = 1.0
    p: float = 2.0
    swap: bool = False


class MultipleNegativesLoss(Loss):
    """Cross entropy of each anchor's positive among all samples' positives, by the cosine.

    M. Henderson et al., arXiv 1705.00652. All samples are the whole batch, on all shards and
    workers. So a fit computes and gathers all predictions before the gradient, and an iteration has
    one more forward pass (L. Gao et al., arXiv 2101.06983).

    Parameters
    ----------
    scale : float
        Factor of the cosines.

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
            When samples have weights, since other shards' weights are not known.
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
            # All shards compute the same loss, and each shard the gradients of its own samples,
            # weighted by their number: the value stays, and the gradients sum to the batch's.
            loss = loss * (n / of_shard) + float(loss) * (1 - n / of_shard)
        return loss
