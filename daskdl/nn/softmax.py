"""Softmax layers: along one axis, by default the channels."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.nn.module import Module
from daskdl.tensor import Tensor

__all__ = ["LogSoftmax", "Softmax", "Softmin"]


class Softmax(Module):
    """exp(x) / sum(exp(x)) along ``axis``."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.softmax(x, axis=self.axis)


class LogSoftmax(Module):
    """x - log(sum(exp(x))) along ``axis``."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.log_softmax(x, axis=self.axis)


class Softmin(Module):
    """Softmax of -x."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.softmax(ops.multiply(x, -1.0), axis=self.axis)
