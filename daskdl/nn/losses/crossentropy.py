"""Losses of classes, of binary labels, and of sequences whose labels have no times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl.nn.losses.loss import Loss, OperationLoss
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CrossEntropyLoss",
    "FocalLoss",
    "MultiLabelSoftMarginLoss",
    "NLLLoss",
]


class CrossEntropyLoss(OperationLoss, operation=ops.cross_entropy, value=2.2832):
    """Mean of -log softmax(logits)[label].

    Compares logits (..., C) with labels (...) from 0, or probabilities (..., C).

    Parameters
    ----------
    weight : numbers (C,), optional
        Weight of each class.
    smoothing : float
        Share of each target that is spread over all classes.
    ignore_index : int, optional
        Positions with this label are left out of their sample's mean.
    """

    weight: Sequence[float] | None = None
    smoothing: float = 0.0
    ignore_index: int | None = None


class FocalLoss(OperationLoss, operation=ops.focal):
    """Cross entropy in which well classified samples count little (T.-Y. Lin et al., 2017).

    Compares logits (..., C) with labels (...) from 0.

    Parameters
    ----------
    gamma : float
        0 gives the cross entropy.
    weight : numbers (C,), optional
        Weight of each class.

    Examples
    --------
    >>> loss = nn.FocalLoss()
    >>> round(float(loss(np.array([[2.0, 0.0]], np.float32), np.array([0]))), 4)
    0.0018
    """

    gamma: float = 2.0
    weight: Sequence[float] | None = None


class NLLLoss(OperationLoss, operation=ops.nll):
    """Negative logarithm of the label's probability.

    Compares logarithms of probabilities (..., C) with labels (...) from 0.

    Parameters
    ----------
    weight : numbers (C,), optional
        Weight of each class.
    ignore_index : int, optional
        Positions with this label are left out of their sample's mean.

    Examples
    --------
    >>> loss = nn.NLLLoss()
    >>> round(float(loss(np.array([[2.0, 0.5, -1.0]], np.float32), np.array([0]))), 4)
    -2.0
    """

    weight: Sequence[float] | None = None
    ignore_index: int | None = None


class CTCLoss(Loss):
    """Connectionist temporal classification (A. Graves et al., ICML 2006).

    Parameters
    ----------
    blank : int
        Class that stands for no label.
    zero_infinity : bool
        Whether a sample with too few steps for its labels counts 0 instead of infinity.

    Examples
    --------
    >>> logits = np.zeros((1, 4, 3), np.float32)  # blank, a, b
    >>> round(float(nn.CTCLoss()(logits, np.array([[1, 2]]))), 4)
    1.6864
    """

    def __init__(self, blank: int = 0, zero_infinity: bool = False) -> None:
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, logits: Any, labels: Any, sample_weight: Any = None, *, lengths: Any = None
    ) -> Tensor:
        """Compare logits (N, T, C) with labels (N, S), rows padded with -1.

        ``lengths`` (N,) is the number of steps that count, by default T.
        """
        return ops.ctc(
            logits,
            labels,
            lengths=lengths,
            blank=self.blank,
            zero_infinity=self.zero_infinity,
            sample_weight=sample_weight,
        )


class BCELoss(OperationLoss, operation=ops.binary_cross_entropy):
    """Binary cross entropy of probabilities.

    Parameters
    ----------
    weight : numbers (C,), optional
        Weight of each class along the last axis.

    Examples
    --------
    >>> prediction = np.array([[0.9, 0.2]], np.float32)
    >>> target = np.array([[1.0, 0.0]], np.float32)
    >>> round(float(nn.BCELoss()(prediction, target)), 4)
    0.1643
    """

    weight: Sequence[float] | None = None


class BCEWithLogitsLoss(
    OperationLoss, operation=ops.binary_cross_entropy_with_logits, value=-0.0299
):
    """Binary cross entropy of logits.

    Parameters
    ----------
    weight : numbers (C,), optional
        Weight of each class along the last axis.
    pos_weight : numbers (C,), optional
        Weight of positives: above 1 it raises recall, below 1 precision.
    """

    weight: Sequence[float] | None = None
    pos_weight: Sequence[float] | None = None


class MultiLabelSoftMarginLoss(
    OperationLoss, operation=ops.binary_cross_entropy_with_logits, value=-0.0299
):
    """Binary cross entropy of logits, under its name for several labels.

    Parameters
    ----------
    weight : numbers (C,), optional
        Weight of each class.
    """

    weight: Sequence[float] | None = None
