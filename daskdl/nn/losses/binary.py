"""Losses of yes and no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl.nn.losses.loss import Loss
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor

__all__ = ["BCELoss", "BCEWithLogitsLoss", "MultiLabelSoftMarginLoss"]


class BCELoss(Loss):
    """Binary cross entropy of probabilities.

    Parameters
    ----------
    weight : numbers (C,), optional
        Of each class along the last axis.

    Examples
    --------
    >>> prediction = np.array([[0.9, 0.2]], np.float32)
    >>> target = np.array([[1.0, 0.0]], np.float32)
    >>> round(float(nn.BCELoss()(prediction, target)), 4)
    0.1643
    """

    def __init__(self, weight: Sequence[float] | None = None) -> None:
        self._weight = weight

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.binary_cross_entropy(
            prediction, target, weight=self._weight, sample_weight=sample_weight
        )


class BCEWithLogitsLoss(Loss):
    """Binary cross entropy of logits.

    Parameters
    ----------
    weight : numbers (C,), optional
        Of each class along the last axis.
    pos_weight : numbers (C,), optional
        Of what is true: above 1 it raises recall, below 1 precision.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.BCEWithLogitsLoss()(prediction, target)), 4)
    -0.0299
    """

    def __init__(
        self, weight: Sequence[float] | None = None, pos_weight: Sequence[float] | None = None
    ) -> None:
        self._weight = weight
        self._pos_weight = pos_weight

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.binary_cross_entropy_with_logits(
            prediction,
            target,
            weight=self._weight,
            pos_weight=self._pos_weight,
            sample_weight=sample_weight,
        )


class MultiLabelSoftMarginLoss(Loss):
    """Binary cross entropy of logits, under the name it has for several labels.

    Parameters
    ----------
    weight : numbers (C,), optional
        Of each class.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.MultiLabelSoftMarginLoss()(prediction, target)), 4)
    -0.0299
    """

    def __init__(self, weight: Sequence[float] | None = None) -> None:
        self._weight = weight

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.binary_cross_entropy_with_logits(
            prediction, target, weight=self._weight, sample_weight=sample_weight
        )
