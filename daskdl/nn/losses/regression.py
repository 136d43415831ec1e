"""Losses of predicted numbers."""

from __future__ import annotations

from typing import Any

from daskdl.nn.losses.loss import Loss
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor

__all__ = ["HuberLoss", "L1Loss", "MAPELoss", "MSELoss", "MSLELoss", "SmoothL1Loss"]


class MSELoss(Loss):
    """Mean squared error.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.MSELoss()(prediction, target)), 4)
    0.625
    """

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.squared_error(prediction, target, sample_weight=sample_weight)


class L1Loss(Loss):
    """Mean absolute error.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.L1Loss()(prediction, target)), 4)
    0.75
    """

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.absolute_error(prediction, target, sample_weight=sample_weight)


class HuberLoss(Loss):
    """Half the squared error up to ``delta``, from there a straight line.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.HuberLoss()(prediction, target)), 4)
    0.3125
    """

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.huber(prediction, target, delta=self.delta, sample_weight=sample_weight)


class SmoothL1Loss(Loss):
    """Absolute error whose corner is rounded within ``beta``.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.SmoothL1Loss()(prediction, target)), 4)
    0.3125
    """

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.smooth_l1(prediction, target, beta=self.beta, sample_weight=sample_weight)


class MAPELoss(Loss):
    """Mean absolute error in percent of the target.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.MAPELoss()(prediction, target)), 4)
    66.6667
    """

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.percentage_error(prediction, target, sample_weight=sample_weight)


class MSLELoss(Loss):
    """Mean squared error of log(1 + x), negative numbers taken for 0.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.MSLELoss()(prediction, target)), 4)
    0.1071
    """

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.squared_log_error(prediction, target, sample_weight=sample_weight)
