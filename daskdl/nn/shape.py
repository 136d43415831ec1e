"""Layers that move numbers without changing them."""

from __future__ import annotations

import math
from typing import Any

from daskdl.errors import ShapeError
from daskdl.nn.module import Module
from daskdl.ops import shape as ops
from daskdl.tensor import Tensor


class Flatten(Module):
    """(N, ...) -> (N, features)."""

    def forward(self, x: Any) -> Tensor:
        """Join all axes but the first."""
        return ops.reshape(x, shape=(x.shape[0], math.prod(x.shape[1:])))


class SpaceToDepth(Module):
    """Fold blocks of pixels into channels, (..., H, W, C) -> (..., H/b, W/b, b * b * C)."""

    def __init__(self, block: int) -> None:
        self.block = block

    def forward(self, x: Any) -> Tensor:
        """Fold; rows and columns have to be multiples of the block."""
        if len(x.shape) < 3 or x.shape[-3] % self.block or x.shape[-2] % self.block:
            raise ShapeError(
                f"SpaceToDepth: expected an input (..., H, W, C) with H and W in multiples of "
                f"{self.block}, found {tuple(x.shape)}"
            )
        return ops.space_to_depth(x, block=self.block)


class DepthToSpace(Module):
    """Unfold channels into blocks of pixels, (..., H, W, b * b * C) -> (..., H*b, W*b, C)."""

    def __init__(self, block: int) -> None:
        self.block = block

    def forward(self, x: Any) -> Tensor:
        """Unfold; the channels have to be a multiple of the block's area."""
        if len(x.shape) < 3 or x.shape[-1] % self.block**2:
            raise ShapeError(
                f"DepthToSpace: expected an input (..., H, W, C) with C in multiples of "
                f"{self.block**2}, found {tuple(x.shape)}"
            )
        return ops.depth_to_space(x, block=self.block)
