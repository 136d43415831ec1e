"""Transposed convolution layers over sequences and images."""

from __future__ import annotations

from typing import Any

from daskdl.nn.arguments import Sizes, check_last_axis, sides, sizes
from daskdl.nn.initialise import generator, uniform
from daskdl.nn.module import Module
from daskdl.ops.conv_transpose import conv_transpose2d
from daskdl.ops.shape import reshape
from daskdl.tensor import Tensor


class ConvTranspose2d(Module):
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
        kernel = sizes("ConvTranspose2d.kernel_size", kernel_size, 2)
        self.stride = sizes("ConvTranspose2d.stride", stride, 2)
        self.pad = sides("ConvTranspose2d.padding", padding, 2)
        self.output_pad = sizes("ConvTranspose2d.output_padding", output_padding, 2, least=0)
        self.dilation = sizes("ConvTranspose2d.dilation", dilation, 2)
        self.in_channels, self.groups = in_channels, groups
        rng, share = generator(seed), out_channels // groups
        fan = kernel[0] * kernel[1] * share
        self.weight = uniform(rng, (in_channels, *kernel, share), fan)
        self.bias = uniform(rng, (out_channels,), fan) if bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, in) to (N, rows, columns, out)."""
        check_last_axis(self, x, 4, self.in_channels)
        y: Tensor = conv_transpose2d(
            x, self.weight, self.bias, stride=self.stride, pad=self.pad,
            output_pad=self.output_pad, dilation=self.dilation, groups=self.groups,
        )  # fmt: skip
        return y


class ConvTranspose1d(Module):
    """Transposed convolution of sequences, (N, T, in) -> (N, steps, out).

    Arguments as :class:`ConvTranspose2d`'s, of one axis.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: Sizes = 0,
        output_padding: int = 0,
        bias: bool = True,
        seed: int | None = None,
        dilation: int = 1,
        groups: int = 1,
    ) -> None:
        (kernel,) = sizes("ConvTranspose1d.kernel_size", kernel_size, 1)
        self.stride = (1, *sizes("ConvTranspose1d.stride", stride, 1))
        self.pad = (0, 0, *sides("ConvTranspose1d.padding", padding, 1))
        self.output_pad = (0, *sizes("ConvTranspose1d.output_padding", output_padding, 1, least=0))
        self.dilation = (1, *sizes("ConvTranspose1d.dilation", dilation, 1))
        self.in_channels, self.groups = in_channels, groups
        rng, share = generator(seed), out_channels // groups
        self.weight = uniform(rng, (in_channels, kernel, share), kernel * share)
        self.bias = uniform(rng, (out_channels,), kernel * share) if bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x (N, T, in) to (N, steps, out)."""
        check_last_axis(self, x, 3, self.in_channels)
        n, steps, channels = x.shape
        images = reshape(x, shape=(n, 1, steps, channels))
        filters, kernel, share = self.weight.shape
        weight = reshape(self.weight, shape=(filters, 1, kernel, share))
        y = conv_transpose2d(
            images, weight, self.bias, stride=self.stride, pad=self.pad,
            output_pad=self.output_pad, dilation=self.dilation, groups=self.groups,
        )  # fmt: skip
        sequence: Tensor = reshape(y, shape=(n, *y.shape[2:]))
        return sequence
