"""Losses as modules: loss(prediction, target) is a scalar, the mean over the batch's samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.nn.module import Module
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor


def _same_shape(loss: Module, prediction: Any, target: Any) -> None:
    if prediction.shape != target.shape:
        raise ShapeError(
            f"{type(loss).__name__}: expected a target of the prediction's shape "
            f"{tuple(prediction.shape)}, found {tuple(target.shape)}"
        )


class MSELoss(Module):
    """Mean squared error."""

    def forward(self, prediction: Any, target: Any) -> Tensor:
        """Compare two arrays of one shape."""
        _same_shape(self, prediction, target)
        return ops.squared_error(prediction, target)


class PrecipitationLoss(Module):
    """Squared plus absolute error, heavier where it rains harder; missing targets count nothing.

    X. Shi et al., arXiv 1706.03458 (balanced MSE and MAE).

    Parameters
    ----------
    thresholds : increasing numbers, in the unit of the target
    weights : one more number than thresholds
        Weight of a pixel below the first threshold, between the first two, and so on.
    squared, absolute : float
        Factors of the two errors.
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
            )
        self._thresholds = np.asarray(thresholds, np.float32)
        self._weights = np.asarray(weights, np.float32)
        self.squared, self.absolute = squared, absolute

    def forward(self, prediction: Any, target: Any) -> Tensor:
        """Compare two arrays of one shape; NaN in the target means missing."""
        _same_shape(self, prediction, target)
        return ops.precipitation(
            prediction,
            target,
            thresholds=self._thresholds,
            weights=self._weights,
            squared=self.squared,
            absolute=self.absolute,
        )


class CrossEntropyLoss(Module):
    """Mean of -log softmax(logits)[label]; labels are integers that count from 0."""

    def forward(self, logits: Any, labels: Any) -> Tensor:
        """Compare logits (..., classes) with labels (...)."""
        labels = np.asarray(labels)
        classes = logits.shape[-1]
        if labels.shape != logits.shape[:-1] or labels.dtype.kind not in "iu":
            raise ShapeError(
                f"CrossEntropyLoss: expected integer labels of shape {tuple(logits.shape[:-1])}, "
                f"found {labels.dtype} {labels.shape}"
            )
        if labels.size and not 0 <= labels.min() <= labels.max() < classes:
            raise ShapeError(
                f"CrossEntropyLoss: expected labels from 0 to {classes - 1}, "
                f"found {labels.min()} to {labels.max()}"
            )
        return ops.cross_entropy(logits, labels)
