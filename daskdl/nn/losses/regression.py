"""Losses of predicted numbers."""

from __future__ import annotations

from daskdl.nn.losses.loss import OperationLoss
from daskdl.ops import losses as ops

__all__ = ["HuberLoss", "L1Loss", "MAPELoss", "MSELoss", "MSLELoss", "SmoothL1Loss"]


class MSELoss(OperationLoss, operation=ops.squared_error, value=0.625):
    """Mean squared error."""


class L1Loss(OperationLoss, operation=ops.absolute_error, value=0.75):
    """Mean absolute error."""


class HuberLoss(OperationLoss, operation=ops.huber, value=0.3125):
    """Half the squared error up to ``delta``, from there a straight line."""

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta


class SmoothL1Loss(OperationLoss, operation=ops.smooth_l1, value=0.3125):
    """Absolute error whose corner is rounded within ``beta``."""

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta


class MAPELoss(OperationLoss, operation=ops.percentage_error, value=66.6667):
    """Mean absolute error in percent of the target."""


class MSLELoss(OperationLoss, operation=ops.squared_log_error, value=0.1071):
    """Mean squared error of log(1 + x), negative numbers taken for 0."""
