"""Layers like convolutions whose filters differ from place to place."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.nn.core.arguments import Sizes, check_last_axis, sides, sizes
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import generator, uniform
from daskdl.tensor import Tensor

__all__ = ["LocallyConnected1d", "LocallyConnected2d"]


class LocallyConnected2d(Module, pure=True):
    """A convolution of images with different weights at each place: one batched product.

    (N, size..., in) -> (N, rows, columns, out)

    Parameters
    ----------
    size : (height, width)
        Size of the images; the number of weights depends on it.
    in_channels, out_channels : int
    kernel_size, stride : int or (down, across)
    padding : int, (down, across) or (above, below, left, right)
        Zeros around the image.
    bias : bool
        Whether each place and channel has a bias.
    seed : int, optional
    """

    def __init__(
        self,
        size: Sizes,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        bias: bool = True,
        seed: int | None = None,
    ) -> None:
        name = type(self).__name__
        self.size = sizes(f"{name}.size", size, 2)
        self.kernel = sizes(f"{name}.kernel_size", kernel_size, 2)
        self.stride = sizes(f"{name}.stride", stride, 2)
        self.pad = sides(f"{name}.padding", padding, 2)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.places = tuple(
            (n + sum(self.pad[2 * i : 2 * i + 2]) - self.kernel[i]) // self.stride[i] + 1
            for i, n in enumerate(self.size)
        )
        if min(self.places) < 1:
            raise ShapeError(
                f"{name}: expected a kernel that fits into the padded size, found {self.kernel} "
                f"and {self.size}"
                "; pad more, or take a smaller kernel"
            )
        rng, fan = generator(seed), self.kernel[0] * self.kernel[1] * in_channels
        self.weight = uniform(rng, (self.places[0] * self.places[1], fan, out_channels), fan)
        self.bias = uniform(rng, (*self.places, out_channels), fan) if bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x (N, size..., in) to (N, rows, columns, out)."""
        check_last_axis(self, x, 4, self.in_channels)
        if tuple(x.shape[1:3]) != self.size:
            raise ShapeError(
                f"{type(self).__name__}: expected images of {self.size} pixels, found "
                f"{tuple(x.shape)}"
            )
        (rows, columns), n = self.places, x.shape[0]
        for i, axis in enumerate((1, 3)):
            pad = self.pad[2 * i], self.pad[2 * i + 1]
            x = ops.unfold(x, axis=axis, size=self.kernel[i], stride=self.stride[i], pad=pad)
        x = ops.transpose(x, axes=(1, 3, 0, 2, 4, 5))
        x = ops.reshape(x, shape=(rows * columns, n, self.weight.shape[1]))
        y = ops.transpose(ops.matmul(x, self.weight), axes=(1, 0, 2))
        y = ops.reshape(y, shape=(n, rows, columns, self.out_channels))
        return y if self.bias is None else y + self.bias


class LocallyConnected1d(Module, pure=True):
    """A convolution of sequences with different weights at each step: (N, T, in) -> (N, ..., out).

    Arguments as :class:`LocallyConnected2d`'s, of one axis.
    """

    def __init__(
        self,
        length: int,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: Sizes = 0,
        bias: bool = True,
        seed: int | None = None,
    ) -> None:
        before, behind = sides("LocallyConnected1d.padding", padding, 1)
        self.length, self.in_channels = length, in_channels
        self.images = LocallyConnected2d(
            (length, 1), in_channels, out_channels, (kernel_size, 1), (stride, 1),
            (before, behind, 0, 0), bias, seed,
        )  # fmt: skip

    def forward(self, x: Any) -> Tensor:
        """Map x (N, T, in) to (N, steps, out)."""
        check_last_axis(self, x, 3, self.in_channels)
        if x.shape[1] != self.length:
            raise ShapeError(
                f"LocallyConnected1d: expected sequences of {self.length} steps, found "
                f"{tuple(x.shape)}"
            )
        y = self.images(ops.reshape(x, shape=(*x.shape[:2], 1, x.shape[2])))
        return ops.reshape(y, shape=(y.shape[0], y.shape[1], y.shape[3]))
