"""Hinge losses of targets that are -1 or 1."""

from __future__ import annotations

from typing import Any

from daskdl.nn.losses.loss import Loss
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor

__all__ = ["HingeEmbeddingLoss", "HingeLoss", "SoftMarginLoss"]


class HingeLoss(Loss):
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

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.hinge(
            prediction,
            target,
            margin=self.margin,
            squared=self.squared,
            sample_weight=sample_weight,
        )


class SoftMarginLoss(Loss):
    """log(1 + exp(-t x)).

    Examples
    --------
    >>> loss = nn.SoftMarginLoss()
    >>> round(float(loss(np.array([0.8, -0.3], np.float32), np.array([1.0, -1.0], np.float32))), 4)
    0.4627
    """

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.soft_margin(prediction, target, sample_weight=sample_weight)


class HingeEmbeddingLoss(Loss):
    """A distance where t is 1; what it is short of the margin where t is -1.

    Examples
    --------
    >>> loss = nn.HingeEmbeddingLoss()
    >>> round(float(loss(np.array([0.8, -0.3], np.float32), np.array([1.0, -1.0], np.float32))), 4)
    1.05
    """

    def __init__(self, margin: float = 1.0) -> None:
        self.margin = margin

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.hinge_embedding(
            prediction, target, margin=self.margin, sample_weight=sample_weight
        )
