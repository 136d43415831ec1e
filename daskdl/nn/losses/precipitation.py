"""Loss of rain maps: heavier where it rains harder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.nn.losses.loss import Loss
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor

__all__ = ["PrecipitationLoss"]


class PrecipitationLoss(Loss):
    """Squared plus absolute error, heavier where it rains harder; missing targets count nothing.

    X. Shi et al., arXiv 1706.03458 (balanced MSE and MAE).

    Parameters
    ----------
    thresholds : increasing numbers, in the unit of the target
    weights : one more number than thresholds
        Weight of a pixel below the first threshold, between the first two, and so on.
    squared, absolute : float
        Factors of the two errors.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.PrecipitationLoss()(prediction, target)), 4)
    1.375
    """

    def __init__(
        self,
        thresholds: Sequence[float] = (2, 5, 10, 30),
        weights: Sequence[float] = (1, 2, 5, 10, 30),
        squared: float = 1.0,
        absolute: float = 1.0,
    ) -> None:
        if len(weights) != len(thresholds) + 1 or list(thresholds) != sorted(thresholds):
            raise ShapeError(
                "PrecipitationLoss: expected increasing thresholds and one more weight than "
                f"thresholds, found {list(thresholds)} and {list(weights)}"
                "; sort the thresholds, and give the weight below the first one, too"
            )
        self._thresholds = np.asarray(thresholds, np.float32)
        self._weights = np.asarray(weights, np.float32)
        self.squared, self.absolute = squared, absolute

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape; NaN in the target means missing."""
        return ops.precipitation(
            prediction,
            target,
            thresholds=self._thresholds,
            weights=self._weights,
            squared=self.squared,
            absolute=self.absolute,
            sample_weight=sample_weight,
        )
