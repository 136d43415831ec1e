"""Sums, means and extremes along axes as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl import ops
from daskdl.nn.module import Module
from daskdl.tensor import Tensor

__all__ = ["Max", "Mean", "Min", "Sum"]


class Sum(Module):
    """The sum over axes, which go away unless ``keepdims``.

    Examples
    --------
    >>> nn.Sum(-1)(np.ones((2, 6, 4), np.float32)).shape
    (2, 6)
    """

    def __init__(self, axis: int | Sequence[int] = -1, keepdims: bool = False) -> None:
        self.axis = axis if isinstance(axis, int) else tuple(axis)
        self.keepdims = keepdims

    def forward(self, x: Any) -> Tensor:
        """Map any shape to that without the axes."""
        return ops.sum(x, axis=self.axis, keepdims=self.keepdims)


class Mean(Sum):
    """The mean over axes, which go away unless ``keepdims``.

    Examples
    --------
    >>> nn.Mean((1, 2))(np.ones((2, 6, 4), np.float32)).shape
    (2,)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to that without the axes."""
        return ops.mean(x, axis=self.axis, keepdims=self.keepdims)


class Max(Module):
    """The largest number along an axis, which goes away unless ``keepdims``.

    Examples
    --------
    >>> nn.Max(1, keepdims=True)(np.ones((2, 6, 4), np.float32)).shape
    (2, 1, 4)
    """

    def __init__(self, axis: int = -1, keepdims: bool = False) -> None:
        self.axis, self.keepdims = axis, keepdims

    def forward(self, x: Any) -> Tensor:
        """Map any shape to that without the axis."""
        return ops.amax(x, axis=self.axis, keepdims=self.keepdims)


class Min(Max):
    """The smallest number along an axis, which goes away unless ``keepdims``.

    Examples
    --------
    >>> nn.Min(-1)(np.ones((2, 6, 4), np.float32)).shape
    (2, 6)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to that without the axis."""
        return ops.amin(x, axis=self.axis, keepdims=self.keepdims)
