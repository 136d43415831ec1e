"""The depthwise separable convolution layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl.nn.arguments import Sizes, check_last_axis
from daskdl.nn.conv2d import Conv2d
from daskdl.nn.module import Module
from daskdl.tensor import Tensor

__all__ = ["SeparableConv2d"]


class SeparableConv2d(Module):
    """A convolution of each channel alone, then one of 1 x 1 that mixes them.

    (N, H, W, in) -> (N, rows, columns, out). F. Chollet, arXiv 1610.02357.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, padding, dilation
        Of the first, as :class:`~daskdl.nn.Conv2d`'s.
    multiplier : int
        Filters of each channel.
    bias : bool
        Of the second.
    seed : int, optional

    Examples
    --------
    >>> layer = nn.SeparableConv2d(4, 6, 3, multiplier=2, seed=0)
    >>> layer(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 4, 3, 6)
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
        y: Tensor = self.pointwise(self.depthwise(x))
        return y
