"""Activations as layers."""

from __future__ import annotations

from typing import Any

from daskdl.nn.module import Module
from daskdl.ops import activations as ops
from daskdl.tensor import Tensor


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.relu(x)


class LeakyReLU(Module):
    """x where positive, ``slope * x`` elsewhere."""

    def __init__(self, slope: float = 0.2) -> None:
        self.slope = slope

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.leaky_relu(x, slope=self.slope)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.sigmoid(x)


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.tanh(x)


class Softplus(Module):
    """log(1 + exp(x))."""

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.softplus(x)
