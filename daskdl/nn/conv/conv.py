"""Convolutions with channels last, and transposed ones, over sequences, images and volumes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from daskdl import ops
from daskdl.nn.conv.padding import Padding
from daskdl.nn.core.arguments import Sizes, check_last_axis, sides, sizes
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import generator, uniform
from daskdl.tensor import Tensor

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "SeparableConv2d",
]


class Windows:
    """Base of layers over windows of an input with one, two or three axes."""

    axes: ClassVar[int]

    def _place(
        self, in_channels: int, kernel_size: Sizes, stride: Sizes,
        padding: int | Sequence[int] | str, dilation: Sizes, groups: int,
    ) -> None:  # fmt: skip
        """Set the windows' places, and the channels of each."""
        name, axes = type(self).__name__, self.axes
        self.kernel = sizes(f"{name}.kernel_size", kernel_size, axes)
        self.stride = sizes(f"{name}.stride", stride, axes)
        self.dilation = sizes(f"{name}.dilation", dilation, axes)
        self.in_channels, self.groups = in_channels, groups
        self._padding = Padding(name, padding, self.kernel, self.stride, self.dilation)


class _Conv(Windows, Module, pure=True):
    """Base of convolutions: weights and settings for one, two or three axes."""

    _operation: ClassVar[str]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: int | Sequence[int] | str = 0,
        bias: bool = True,
        seed: int | None = None,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> None:
        self._place(in_channels, kernel_size, stride, padding, dilation, groups)
        share = self._padding.share(in_channels, out_channels, groups)
        rng, fan = generator(seed), math.prod(self.kernel) * share
        self.weight = uniform(rng, (out_channels, *self.kernel, share), fan)
        self.bias = uniform(rng, (out_channels,), fan) if bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., in) to (N, ..., out)."""
        check_last_axis(self, x, self.axes + 2, self.in_channels)
        steps: Any = self.stride, self.dilation
        stride, dilation = (one[0] for one in steps) if self.axes == 1 else steps
        return getattr(ops, self._operation)(
            x, self.weight, self.bias, stride=stride, pad=self._padding.of(x.shape[1:-1]),
            dilation=dilation, groups=self.groups,
        )  # fmt: skip


class Conv1d(_Conv, pure=True):
    """Convolution of sequences, (N, T, in) -> (N, steps, out).

    Arguments as :class:`Conv2d`'s, of one axis. Padding may also be "causal": all zeros come first,
    so that no result sees a later step.
    """

    axes, _operation = 1, "conv1d"


class Conv2d(_Conv, pure=True):
    """Convolution of images, (N, H, W, in) -> (N, rows, columns, out).

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride : int or (down, across)
    padding : int, (down, across), (above, below, left, right) or "same"
        Zeros on both sides. "same" gives an image of the input's size, divided by the stride and
        rounded up; an odd zero is added below and to the right, as in TensorFlow.
    bias : bool
    seed : int, optional
        Seed of the initial weights.
    dilation : int or (down, across)
        Pixels from one tap of the kernel to the next.
    groups : int
        Number of groups of channels; ``in_channels`` groups make it depthwise.
    """

    axes, _operation = 2, "conv2d"


class Conv3d(_Conv, pure=True):
    """Convolution of volumes, (N, D, H, W, in) -> (N, depths, rows, columns, out).

    Arguments as :class:`Conv2d`'s, of three axes.
    """

    axes, _operation = 3, "conv3d"


class SeparableConv2d(Module, pure=True):
    """A convolution of each channel alone, then one of 1 x 1 that mixes them.

    (N, H, W, in) -> (N, rows, columns, out). F. Chollet, arXiv 1610.02357.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, padding, dilation
        Settings of the first convolution, as :class:`~daskdl.nn.Conv2d`'s.
    multiplier : int
        Number of filters for each channel.
    bias : bool
        Whether the second convolution has a bias.
    seed : int, optional
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | Sequence[int] | str = 0,
        multiplier: int = 1,
        bias: bool = True,
        seed: int | None = None,
        dilation: Sizes = 1,
    ) -> None:
        self.in_channels = in_channels
        between = in_channels * multiplier
        self.depthwise = Conv2d(
            in_channels, between, kernel_size, stride, padding, False, seed, dilation, in_channels
        )
        after = None if seed is None else seed + 1
        self.pointwise = Conv2d(between, out_channels, 1, bias=bias, seed=after)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, in) to (N, rows, columns, out)."""
        check_last_axis(self, x, 4, self.in_channels)
        return self.pointwise(self.depthwise(x))


class _ConvTranspose(Module, pure=True):
    """Base of transposed convolutions: weights and settings for one, two or three axes."""

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
        return getattr(ops, self._operation)(
            x, self.weight, self.bias, stride=self.stride, pad=self.pad,
            output_pad=self.output_pad, dilation=self.dilation, groups=self.groups,
        )  # fmt: skip


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
        y = ops.conv_transpose2d(  # sequences are images with one row
            ops.reshape(x, shape=(n, 1, steps, channels)),
            ops.reshape(self.weight, shape=(filters, 1, kernel, share)),
            self.bias,
            stride=(1, *self.stride),
            pad=(0, 0, *self.pad),
            output_pad=(0, *self.output_pad),
            dilation=(1, *self.dilation),
            groups=self.groups,
        )
        return ops.reshape(y, shape=(n, *y.shape[2:]))


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution of images, (N, H, W, in) -> (N, rows, columns, out).

    ``rows = (H - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + 1 + output_padding``.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride : int or (down, across)
    padding : int, (down, across) or (above, below, left, right)
        Rows and columns to cut off the result.
    output_padding : int or (below, right)
        Additional rows and columns, fewer than the stride.
    bias : bool
    seed : int, optional
        Seed of the initial weights.
    dilation : int or (down, across)
    groups : int
    """

    axes, _operation = 2, "conv_transpose2d"


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution of volumes, (N, D, H, W, in) -> (N, depths, rows, columns, out).

    Arguments as :class:`ConvTranspose2d`'s, of three axes.
    """

    axes, _operation = 3, "conv_transpose3d"
