"""Activations with thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.nn.module import Module
from daskdl.tensor import Tensor

__all__ = ["BinaryThreshold", "HardShrink", "HardTanh", "SoftShrink", "Threshold"]


class Threshold(Module):
    """x where above ``threshold``, ``value`` elsewhere.

    Examples
    --------
    >>> nn.Threshold()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[0. , 0.5, 2. ]], dtype=float32)
    """

    def __init__(self, threshold: float = 1e-6, value: float = 0.0) -> None:
        self.threshold, self.value = threshold, value

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.threshold(x, threshold=self.threshold, value=self.value)


class BinaryThreshold(Module):
    """1 where x is above ``threshold``, 0 elsewhere; no gradient passes.

    Examples
    --------
    >>> nn.BinaryThreshold()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[0., 1., 1.]], dtype=float32)
    """

    def __init__(self, threshold: float = 1e-6) -> None:
        self.threshold = threshold

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        values = np.asarray(x)
        return Tensor((values > self.threshold).astype(values.dtype))


class HardTanh(Module):
    """x from ``low`` to ``high``.

    Examples
    --------
    >>> nn.HardTanh()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-1. ,  0.5,  1. ]], dtype=float32)
    """

    def __init__(self, low: float = -1.0, high: float = 1.0) -> None:
        self.low, self.high = low, high

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.hard_tanh(x, low=self.low, high=self.high)


class HardShrink(Module):
    """x where further than ``edge`` from 0, 0 elsewhere.

    Examples
    --------
    >>> nn.HardShrink()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-1.,  0.,  2.]], dtype=float32)
    """

    def __init__(self, edge: float = 0.5) -> None:
        self.edge = edge

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.hard_shrink(x, edge=self.edge)


class SoftShrink(Module):
    """x moved by ``edge`` towards 0, and 0 where it would pass it.

    Examples
    --------
    >>> nn.SoftShrink()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-0.5,  0. ,  1.5]], dtype=float32)
    """

    def __init__(self, edge: float = 0.5) -> None:
        self.edge = edge

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.soft_shrink(x, edge=self.edge)
