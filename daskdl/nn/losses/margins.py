"""Losses of margins between scores."""

from __future__ import annotations

from collections.abc import Sequence

from daskdl.nn.losses.loss import OperationLoss
from daskdl.ops import losses as ops

__all__ = [
    "HingeEmbeddingLoss",
    "HingeLoss",
    "MultiLabelMarginLoss",
    "MultiMarginLoss",
    "SoftMarginLoss",
]


class MultiMarginLoss(OperationLoss, operation=ops.multi_margin):
    """Hinge of several classes: scores of wrong ones above the right one's less a margin.

    Compares scores (N, C) with labels (N,).

    Parameters
    ----------
    p : 1 or 2
        Power of what is above.
    margin : float
    weight : numbers (C,), optional
        Of each label.

    Examples
    --------
    >>> float(nn.MultiMarginLoss()(np.array([[0.8, 0.3, -1.0]]), np.array([0])).data.round(4))
    0.1667
    """

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Sequence[float] | None = None
    ) -> None:
        self.p = p
        self.margin = margin
        self.weight = weight


class MultiLabelMarginLoss(OperationLoss, operation=ops.multilabel_margin):
    """Hinge of several labels: scores of wrong classes above each right one's less 1.

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

    def __init__(self, margin: float = 1.0, squared: bool = False) -> None:
        self.margin = margin
        self.squared = squared


class SoftMarginLoss(OperationLoss, operation=ops.soft_margin):
    """log(1 + exp(-t x)).

    Examples
    --------
    >>> loss = nn.SoftMarginLoss()
    >>> round(float(loss(np.array([0.8, -0.3], np.float32), np.array([1.0, -1.0], np.float32))), 4)
    0.4627
    """


class HingeEmbeddingLoss(OperationLoss, operation=ops.hinge_embedding):
    """A distance where t is 1; what it is short of the margin where t is -1.

    Examples
    --------
    >>> loss = nn.HingeEmbeddingLoss()
    >>> round(float(loss(np.array([0.8, -0.3], np.float32), np.array([1.0, -1.0], np.float32))), 4)
    1.05
    """

    def __init__(self, margin: float = 1.0) -> None:
        self.margin = margin
