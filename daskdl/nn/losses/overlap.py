"""Overlap of sets of pixels."""

from __future__ import annotations

from typing import Any

from daskdl.nn.losses.loss import Loss
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor

__all__ = ["DiceLoss"]


class DiceLoss(Loss):
    """One minus twice what prediction and target share, over their sum.

    Parameters
    ----------
    smooth : float
        What makes the loss of an empty target finite.
    squared : bool
        Whether the sum is that of squares, as in F. Milletari et al., arXiv 1606.04797.

    Examples
    --------
    >>> mask = np.array([[[1], [0]]], np.float32)
    >>> float(nn.DiceLoss()(mask, mask))
    0.0
    """

    def __init__(self, smooth: float = 1.0, squared: bool = False) -> None:
        self.smooth = smooth
        self.squared = squared

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays (N, ..., C) of numbers from 0 to 1."""
        return ops.dice(
            prediction,
            target,
            smooth=self.smooth,
            squared=self.squared,
            sample_weight=sample_weight,
        )
