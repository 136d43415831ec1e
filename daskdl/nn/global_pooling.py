"""Pooling layers over all of a sample, or over windows that share it out."""

from __future__ import annotations

import math
from typing import Any

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.nn.arguments import Sizes, check_axes, sizes
from daskdl.nn.module import Module
from daskdl.tensor import Tensor

__all__ = ["AdaptiveAvgPool2d", "AdaptiveMaxPool2d", "GlobalAvgPool", "GlobalMaxPool"]


class GlobalAvgPool(Module):
    """The mean of each channel of a sequence, image or volume, (N, ..., C) -> (N, C).

    Examples
    --------
    >>> nn.GlobalAvgPool()(np.ones((2, 6, 4), np.float32)).shape
    (2, 4)
    """

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., C) to (N, C)."""
        return ops.global_avg_pool2d(_as_image(self, x))


class GlobalMaxPool(Module):
    """The largest number of each channel, (N, ..., C) -> (N, C).

    Examples
    --------
    >>> nn.GlobalMaxPool()(np.ones((2, 6, 4), np.float32)).shape
    (2, 4)
    """

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., C) to (N, C)."""
        return ops.global_max_pool2d(_as_image(self, x))


class AdaptiveAvgPool2d(Module):
    """Means over ``size`` windows that share an image out, (N, H, W, C) -> (N, size..., C).

    Examples
    --------
    >>> nn.AdaptiveAvgPool2d((2, 3))(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 2, 3, 4)
    """

    def __init__(self, size: Sizes) -> None:
        self.size = sizes("AdaptiveAvgPool2d.size", size, 2)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, C) to (N, size..., C)."""
        check_axes(self, x, "N H W C")
        return ops.adaptive_avg_pool2d(x, size=(self.size[0], self.size[1]))


class AdaptiveMaxPool2d(Module):
    """Maxima over ``size`` windows that share an image out, (N, H, W, C) -> (N, size..., C).

    Examples
    --------
    >>> nn.AdaptiveMaxPool2d((2, 3))(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 2, 3, 4)
    """

    def __init__(self, size: Sizes) -> None:
        self.size = sizes("AdaptiveMaxPool2d.size", size, 2)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, C) to (N, size..., C)."""
        check_axes(self, x, "N H W C")
        return ops.adaptive_max_pool2d(x, size=(self.size[0], self.size[1]))


def _as_image(layer: Module, x: Any) -> Tensor:
    if len(x.shape) < 3:
        raise ShapeError(
            f"{type(layer).__name__}: expected an input of shape (N, ..., C) with axes to pool "
            f"over, found {tuple(x.shape)}"
            "; leave out the layer for samples without axes"
        )
    if len(x.shape) == 4:
        return x
    y: Tensor = ops.reshape(x, shape=(x.shape[0], math.prod(x.shape[1:-1]), 1, x.shape[-1]))
    return y
