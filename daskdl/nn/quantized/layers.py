"""Int8Conv2d and Int8Linear: int8 weights, and inputs that are rounded to bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from daskdl import ops
from daskdl.kernels.int8.weights import quantised
from daskdl.nn.conv.conv import Conv2d, Windows
from daskdl.nn.core.arguments import Sizes, check_last_axis
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import Buffer
from daskdl.nn.linear import Linear
from daskdl.ops.int8 import packed, unpacked
from daskdl.tensor import Array, Tensor

__all__ = ["Int8Conv2d", "Int8Linear"]


class _Int8(Module, pure=True):
    """Base of layers with int8 weights, of ``shape``, and the scale and zero of their inputs.

    Four weights are the bits of one float32, so that they lie in the model's one vector and in its
    file as all numbers do. Nothing of it is trained.
    """

    shape: tuple[int, ...]

    def _hold(
        self, shape: tuple[int, ...], bias: bool, x_scale: float | None, x_zero: int
    ) -> None:  # fmt: skip
        self.shape = shape
        self.of_x = None if x_scale is None else (float(np.float32(x_scale)), int(x_zero))
        self.words = Buffer(np.zeros(-(-math.prod(shape) // 4), np.float32))
        self.scale = Buffer(np.ones(shape[0], np.float32))
        self.bias = Buffer(np.zeros(shape[0], np.float32)) if bias else None

    def take(self, weight: Array, bias: Array | None) -> Self:
        """Round float32 weights, and take them."""
        numbers, scale = quantised(weight)
        self.words.data[:], self.scale.data[:] = packed(numbers), scale
        if self.bias is not None and bias is not None:
            self.bias.data[:] = bias
        return self

    @property
    def weight(self) -> Array:
        """The weights that it computes with, float32 of :attr:`shape`."""
        numbers = unpacked(self.words.data, self.shape)
        factor = self.scale.data.reshape(-1, *(1,) * (len(self.shape) - 1))
        return numbers.astype(np.float32) * factor


class Int8Conv2d(Windows, _Int8, pure=True):
    """A convolution of images with int8 weights, (N, H, W, in) -> (N, rows, columns, out).

    :func:`daskdl.quantize` makes it of a :class:`~daskdl.nn.Conv2d`, whose arguments are its first.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, bias, dilation
        As :class:`~daskdl.nn.Conv2d`'s.
    x_scale, x_zero : float, int
        What the bytes of inputs stand for: ``(byte - x_zero) * x_scale``.
    groups : int
        As :class:`~daskdl.nn.Conv2d`'s.
    """

    axes = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: int | Sequence[int] | str = 0,
        bias: bool = True,
        dilation: Sizes = 1,
        x_scale: float = 1.0,
        x_zero: int = 0,
        groups: int = 1,
    ) -> None:
        self._place(in_channels, kernel_size, stride, padding, dilation, groups)
        share = self._padding.share(in_channels, out_channels, groups)
        self._hold((out_channels, *self.kernel, share), bias, x_scale, x_zero)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, in) to (N, rows, columns, out)."""
        check_last_axis(self, x, 4, self.in_channels)
        pad: Any = self._padding.of(x.shape[1:-1])
        steps: Any = self.stride, self.dilation
        y: Tensor = ops.int8_conv2d(
            x, self.words, self.scale, self.bias, shape=self.shape, of_x=self.of_x,
            stride=steps[0], pad=pad, dilation=steps[1], groups=self.groups,
        )  # fmt: skip
        return y


class Int8Linear(_Int8, pure=True):
    """``x @ weight.T + bias`` with int8 weights, (..., in) -> (..., out).

    Parameters
    ----------
    in_features, out_features : int
    bias : bool
    x_scale, x_zero : float, int
        As :class:`Int8Conv2d`'s; without a scale, None, each row has one of its own.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        x_scale: float | None = 1.0,
        x_zero: int = 0,
    ) -> None:
        self.in_features = in_features
        self._hold((out_features, in_features), bias, x_scale, x_zero)

    def forward(self, x: Any) -> Tensor:
        """Map x (..., in) to (..., out)."""
        check_last_axis(self, x, None, self.in_features)
        y: Tensor = ops.int8_linear(
            x, self.words, self.scale, self.bias, shape=self.shape, of_x=self.of_x
        )
        return y


def int8_of(layer: Conv2d | Linear, x_scale: float | None, x_zero: int) -> Int8Conv2d | Int8Linear:
    """Return a layer with a float32 layer's weights, rounded."""
    bias = layer.bias is not None
    if isinstance(layer, Linear):
        out, inner = layer.weight.shape
        made: Any = Int8Linear(inner, out, bias, x_scale, x_zero)
    else:
        arguments = layer.in_channels, len(layer.weight), layer.kernel, layer.stride
        more: Any = layer.dilation, x_scale, x_zero, layer.groups
        made = Int8Conv2d(*arguments, _padding_of(layer), bias, *more)
    return made.take(layer.weight.data, layer.bias.data if layer.bias is not None else None)


def _padding_of(layer: Conv2d) -> Any:
    padding = layer._padding
    return padding.fixed if padding.mode == "fixed" else padding.mode
