"""Softmax layers: along one axis, by default the channels."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.nn.module import Module
from daskdl.tensor import Tensor

__all__ = ["LogSoftmax", "Softmax", "Softmin"]


class Softmax(Module):
    """exp(x) / sum(exp(x)) along ``axis``.

    Examples
    --------
    >>> nn.Softmax()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[0.039, 0.175, 0.786]], dtype=float32)
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.softmax(x, axis=self.axis)


class LogSoftmax(Module):
    """x - log(sum(exp(x))) along ``axis``.

    Examples
    --------
    >>> nn.LogSoftmax()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-3.241, -1.741, -0.241]], dtype=float32)
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.log_softmax(x, axis=self.axis)


class Softmin(Module):
    """Softmax of -x.

    Examples
    --------
    >>> nn.Softmin()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[0.786, 0.175, 0.039]], dtype=float32)
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.softmax(ops.multiply(x, -1.0), axis=self.axis)
