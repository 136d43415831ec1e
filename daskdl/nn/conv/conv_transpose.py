"""Transposed convolution layers over sequences, images and volumes."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from daskdl import ops
from daskdl.nn.core.arguments import Sizes, check_last_axis, sides, sizes
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import generator, uniform
from daskdl.tensor import Tensor

__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _ConvTranspose(Module, pure=True):
    """Base of transposed convolutions: weights and settings for so many axes."""

    axes: ClassVar[int]
    _operation: ClassVar[str]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        bias: bool = True,
        seed: int | None = None,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> None:
        name, axes = type(self).__name__, self.axes
        kernel = sizes(f"{name}.kernel_size", kernel_size, axes)
        self.stride = sizes(f"{name}.stride", stride, axes)
        self.pad = sides(f"{name}.padding", padding, axes)
        self.output_pad = sizes(f"{name}.output_padding", output_padding, axes, least=0)
        self.dilation = sizes(f"{name}.dilation", dilation, axes)
        self.in_channels, self.groups = in_channels, groups
        rng, share = generator(seed), out_channels // groups
        fan = math.prod(kernel) * share
        self.weight = uniform(rng, (in_channels, *kernel, share), fan)
        self.bias = uniform(rng, (out_channels,), fan) if bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., in) to (N, ..., out)."""
        check_last_axis(self, x, self.axes + 2, self.in_channels)
        y: Tensor = getattr(ops, self._operation)(
            x, self.weight, self.bias, stride=self.stride, pad=self.pad,
            output_pad=self.output_pad, dilation=self.dilation, groups=self.groups,
        )  # fmt: skip
        return y


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution of sequences, (N, T, in) -> (N, steps, out).

    Arguments as :class:`ConvTranspose2d`'s, of one axis.
    """

    axes = 1

    def forward(self, x: Any) -> Tensor:
        """Map x (N, T, in) to (N, steps, out)."""
        check_last_axis(self, x, 3, self.in_channels)
        n, steps, channels = x.shape
        filters, kernel, share = self.weight.shape
        y = ops.conv_transpose2d(  # of images with one row
            ops.reshape(x, shape=(n, 1, steps, channels)),
            ops.reshape(self.weight, shape=(filters, 1, kernel, share)),
            self.bias,
            stride=(1, *self.stride),
            pad=(0, 0, *self.pad),
            output_pad=(0, *self.output_pad),
            dilation=(1, *self.dilation),
            groups=self.groups,
        )
        sequence: Tensor = ops.reshape(y, shape=(n, *y.shape[2:]))
        return sequence


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution of images, (N, H, W, in) -> (N, rows, columns, out).

    ``rows = (H - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + 1 + output_padding``.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride : int or (down, across)
    padding : int, (down, across) or (above, below, left, right)
        Rows and columns that are cut off the result.
    output_padding : int or (below, right)
        Rows and columns more, each fewer than the stride.
    bias : bool
    seed : int, optional
        Of the initial weights.
    dilation : int or (down, across)
    groups : int
    """

    axes, _operation = 2, "conv_transpose2d"


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution of volumes, (N, D, H, W, in) -> (N, depths, rows, columns, out).

    Arguments as :class:`ConvTranspose2d`'s, of three axes.
    """

    axes, _operation = 3, "conv_transpose3d"
