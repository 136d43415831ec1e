"""Margins between the scores of right and of wrong classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl.nn.losses.loss import Loss
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor

__all__ = ["MultiLabelMarginLoss", "MultiMarginLoss"]


class MultiMarginLoss(Loss):
    """Hinge of several classes: scores of wrong ones above the right one's less a margin.

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
        self._weight = weight

    def forward(self, prediction: Any, labels: Any, sample_weight: Any = None) -> Tensor:
        """Compare scores (N, C) with labels (N,)."""
        return ops.multi_margin(
            prediction,
            labels,
            p=self.p,
            margin=self.margin,
            weight=self._weight,
            sample_weight=sample_weight,
        )


class MultiLabelMarginLoss(Loss):
    """Hinge of several labels: scores of wrong classes above each right one's less 1.

    Examples
    --------
    >>> scores = np.array([[0.1, 0.2, 0.4, 0.8]], np.float32)
    >>> round(float(nn.MultiLabelMarginLoss()(scores, np.array([[3, 0, -1, 1]]))), 4)
    0.85
    """

    def forward(self, prediction: Any, labels: Any, sample_weight: Any = None) -> Tensor:
        """Compare scores (N, C) with labels (N, K), each row ended by -1."""
        return ops.multilabel_margin(prediction, labels, sample_weight=sample_weight)
