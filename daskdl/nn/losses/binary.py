"""Losses of yes and no."""

from __future__ import annotations

from collections.abc import Sequence

from daskdl.nn.losses.loss import OperationLoss
from daskdl.ops import losses as ops

__all__ = ["BCELoss", "BCEWithLogitsLoss", "MultiLabelSoftMarginLoss"]


class BCELoss(OperationLoss, operation=ops.binary_cross_entropy):
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
        self.weight = weight


class BCEWithLogitsLoss(
    OperationLoss, operation=ops.binary_cross_entropy_with_logits, value=-0.0299
):
    """Binary cross entropy of logits.

    Parameters
    ----------
    weight : numbers (C,), optional
        Of each class along the last axis.
    pos_weight : numbers (C,), optional
        Of what is true: above 1 it raises recall, below 1 precision.
    """

    def __init__(
        self, weight: Sequence[float] | None = None, pos_weight: Sequence[float] | None = None
    ) -> None:
        self.weight = weight
        self.pos_weight = pos_weight


class MultiLabelSoftMarginLoss(
    OperationLoss, operation=ops.binary_cross_entropy_with_logits, value=-0.0299
):
    """Binary cross entropy of logits, under the name it has for several labels.

    Parameters
    ----------
    weight : numbers (C,), optional
        Of each class.
    """

    def __init__(self, weight: Sequence[float] | None = None) -> None:
        self.weight = weight
