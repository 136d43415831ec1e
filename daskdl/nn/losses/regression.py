"""Losses of predicted numbers."""

from __future__ import annotations

from daskdl.nn.losses.loss import OperationLoss

__all__ = ["HuberLoss", "L1Loss", "MAPELoss", "MSELoss", "MSLELoss", "SmoothL1Loss"]


class MSELoss(OperationLoss):
    """Mean squared error.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.MSELoss()(prediction, target)), 4)
    0.625
    """

    _operation = "squared_error"


class L1Loss(OperationLoss):
    """Mean absolute error.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.L1Loss()(prediction, target)), 4)
    0.75
    """

    _operation = "absolute_error"


class HuberLoss(OperationLoss):
    """Half the squared error up to ``delta``, from there a straight line.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.HuberLoss()(prediction, target)), 4)
    0.3125
    """

    _operation, _settings = "huber", ("delta",)

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta


class SmoothL1Loss(OperationLoss):
    """Absolute error whose corner is rounded within ``beta``.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.SmoothL1Loss()(prediction, target)), 4)
    0.3125
    """

    _operation, _settings = "smooth_l1", ("beta",)

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta


class MAPELoss(OperationLoss):
    """Mean absolute error in percent of the target.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.MAPELoss()(prediction, target)), 4)
    66.6667
    """

    _operation = "percentage_error"


class MSLELoss(OperationLoss):
    """Mean squared error of log(1 + x), negative numbers taken for 0.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.MSLELoss()(prediction, target)), 4)
    0.1071
    """

    _operation = "squared_log_error"
