"""Losses of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl.nn.losses.loss import Loss
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor

__all__ = ["CrossEntropyLoss", "NLLLoss"]


class CrossEntropyLoss(Loss):
    """Mean of -log softmax(logits)[label].

    Parameters
    ----------
    weight : numbers (C,), optional
        Of each class.
    smoothing : float
        The share of each target that is spread over all classes.
    ignore_index : int, optional
        Positions with this label are left out of their sample's mean.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.CrossEntropyLoss()(prediction, target)), 4)
    2.2832
    """

    def __init__(
        self,
        weight: Sequence[float] | None = None,
        smoothing: float = 0.0,
        ignore_index: int | None = None,
    ) -> None:
        self._weight = weight
        self.smoothing = smoothing
        self.ignore_index = ignore_index

    def forward(self, logits: Any, labels: Any, sample_weight: Any = None) -> Tensor:
        """Compare logits (..., C) with labels (...) from 0, or probabilities (..., C)."""
        return ops.cross_entropy(
            logits,
            labels,
            weight=self._weight,
            smoothing=self.smoothing,
            ignore_index=self.ignore_index,
            sample_weight=sample_weight,
        )


class NLLLoss(Loss):
    """Minus the label's logarithm of a probability.

    Parameters
    ----------
    weight : numbers (C,), optional
        Of each class.
    ignore_index : int, optional
        Positions with this label are left out of their sample's mean.

    Examples
    --------
    >>> loss = nn.NLLLoss()
    >>> round(float(loss(np.array([[2.0, 0.5, -1.0]], np.float32), np.array([0]))), 4)
    -2.0
    """

    def __init__(
        self, weight: Sequence[float] | None = None, ignore_index: int | None = None
    ) -> None:
        self._weight = weight
        self.ignore_index = ignore_index

    def forward(self, log_probabilities: Any, labels: Any, sample_weight: Any = None) -> Tensor:
        """Compare logarithms of probabilities (..., C) with labels (...) from 0."""
        return ops.nll(
            log_probabilities,
            labels,
            weight=self._weight,
            ignore_index=self.ignore_index,
            sample_weight=sample_weight,
        )
