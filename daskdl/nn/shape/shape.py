"""Layers that move numbers without changing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from daskdl.errors import ShapeError
from daskdl.nn.core.module import Module
from daskdl.ops.shape import shape as ops
from daskdl.tensor import Tensor

__all__ = [
    "DepthToSpace",
    "Flatten",
    "Flip",
    "Narrow",
    "Permute",
    "Repeat",
    "Reshape",
    "Select",
    "SpaceToDepth",
    "Squeeze",
    "Unsqueeze",
]


class Flatten(Module, pure=True):
    """(N, ...) -> (N, features)."""

    def forward(self, x: Any) -> Tensor:
        """Join all axes except the first."""
        return ops.reshape(x, shape=(x.shape[0], math.prod(x.shape[1:])))


class Reshape(Module, pure=True):
    """(N, ...) -> (N, shape...); the batch's axis stays, and one number may be -1."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)

    def forward(self, x: Any) -> Tensor:
        """Reshape each sample."""
        size, shape = math.prod(x.shape[1:]), list(self.shape)
        known = math.prod(n for n in shape if n != -1)
        if shape.count(-1) == 1 and known:
            shape[shape.index(-1)] = size // known
        if math.prod(shape) != size or -1 in shape:
            raise ShapeError(
                f"Reshape: expected samples of {known} numbers for the shape {self.shape}, found "
                f"{tuple(x.shape[1:])}"
                "; sizes after the batch's axis have to have that product"
            )
        return ops.reshape(x, shape=(x.shape[0], *shape))


class Permute(Module, pure=True):
    """Reorders the axes after the batch's; 1 is the first of them."""

    def __init__(self, axes: Sequence[int]) -> None:
        self.axes = tuple(axes)

    def forward(self, x: Any) -> Tensor:
        """Map (N, ...) to the same numbers in another order."""
        if sorted(self.axes) != list(range(1, len(x.shape))):
            raise ShapeError(
                f"Permute: expected axes 1 to {len(x.shape) - 1} in some order for an input of "
                f"shape {tuple(x.shape)}, found {self.axes}"
                "; name each axis after the batch's once"
            )
        return ops.transpose(x, axes=(0, *self.axes))


class Squeeze(Module, pure=True):
    """Removes an axis of length 1."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        """Map (..., 1, ...) to (..., ...)."""
        shape, axis = list(x.shape), _axis(self, x, self.axis)
        if shape.pop(axis) != 1:
            raise ShapeError(
                f"Squeeze: expected length 1 of axis {self.axis}, found shape {tuple(x.shape)}"
                "; name another axis, or use Select"
            )
        return ops.reshape(x, shape=tuple(shape))


class Unsqueeze(Module, pure=True):
    """Inserts an axis of length 1 as axis ``axis``."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        """Map (..., ...) to (..., 1, ...)."""
        shape = list(x.shape)
        if not -len(shape) - 1 <= self.axis <= len(shape):
            raise ShapeError(
                f"Unsqueeze: expected an axis from {-len(shape) - 1} to {len(shape)}, found "
                f"{self.axis} for an input of shape {tuple(shape)}"
            )
        shape.insert(self.axis if self.axis >= 0 else len(shape) + 1 + self.axis, 1)
        return ops.reshape(x, shape=tuple(shape))


class Select(Module, pure=True):
    """Takes one place of an axis and removes the axis: (..., L, ...) -> (..., ...)."""

    def __init__(self, axis: int, index: int) -> None:
        self.axis, self.index = axis, index

    def forward(self, x: Any) -> Tensor:
        """Take the place."""
        axis = _axis(self, x, self.axis)
        if not -x.shape[axis] <= self.index < x.shape[axis]:
            raise ShapeError(
                f"Select: expected axis {self.axis} to have a place {self.index}, found shape "
                f"{tuple(x.shape)}"
                "; count places from 0, or back from -1"
            )
        return ops.take(x, index=(*(slice(None),) * axis, self.index))


class Narrow(Module, pure=True):
    """Take ``length`` places of an axis from ``start`` on."""

    def __init__(self, axis: int, start: int, length: int = 1) -> None:
        self.axis, self.start, self.length = axis, start, length

    def forward(self, x: Any) -> Tensor:
        """Take the places."""
        axis = _axis(self, x, self.axis)
        if self.start < 0 or self.length < 0 or self.start + self.length > x.shape[axis]:
            raise ShapeError(
                f"Narrow: expected axis {self.axis} to have places {self.start} to "
                f"{self.start + self.length}, found shape {tuple(x.shape)}"
            )
        here = slice(self.start, self.start + self.length)
        return ops.take(x, index=(*(slice(None),) * axis, here))


class Flip(Module, pure=True):
    """Reverses an axis, such as time."""

    def __init__(self, axis: int = 1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.flip(x, axis=_axis(self, x, self.axis))


class Repeat(Module, pure=True):
    """Repeats a sample ``times`` times along a new axis: (N, C) -> (N, times, C)."""

    def __init__(self, times: int, axis: int = 1) -> None:
        self.times, self.axis = times, axis

    def forward(self, x: Any) -> Tensor:
        """Map (..., ...) to (..., times, ...)."""
        return ops.repeat(Unsqueeze(self.axis)(x), times=self.times, axis=self.axis)


class SpaceToDepth(Module, pure=True):
    """Fold blocks of pixels into channels, (..., H, W, C) -> (..., H/b, W/b, b * b * C)."""

    def __init__(self, block: int) -> None:
        self.block = block

    def forward(self, x: Any) -> Tensor:
        """Fold; rows and columns have to be multiples of the block."""
        if len(x.shape) < 3 or x.shape[-3] % self.block or x.shape[-2] % self.block:
            raise ShapeError(
                f"SpaceToDepth: expected an input (..., H, W, C) with H and W in multiples of "
                f"{self.block}, found {tuple(x.shape)}"
                "; pad or crop the images first"
            )
        return ops.space_to_depth(x, block=self.block)


class DepthToSpace(Module, pure=True):
    """Unfold channels into blocks of pixels, (..., H, W, b * b * C) -> (..., H*b, W*b, C)."""

    def __init__(self, block: int) -> None:
        self.block = block

    def forward(self, x: Any) -> Tensor:
        """Unfold; the channels have to be a multiple of the block's area."""
        if len(x.shape) < 3 or x.shape[-1] % self.block**2:
            raise ShapeError(
                f"DepthToSpace: expected an input (..., H, W, C) with C in multiples of "
                f"{self.block**2}, found {tuple(x.shape)}"
                "; pad or crop the images first"
            )
        return ops.depth_to_space(x, block=self.block)


def _axis(layer: Module, x: Any, axis: int) -> int:
    """Return an axis of x, counted from the first."""
    if not -len(x.shape) <= axis < len(x.shape):
        raise ShapeError(
            f"{type(layer).__name__}: expected an input with an axis {axis}, found shape "
            f"{tuple(x.shape)}"
        )
    return axis % len(x.shape)
