"""Convolution layers over volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl.nn.arguments import Sizes, check_last_axis, sizes
from daskdl.nn.initialise import generator, uniform
from daskdl.nn.module import Module
from daskdl.nn.padding import Padding
from daskdl.ops.conv3d import conv3d
from daskdl.tensor import Tensor

__all__ = ["Conv3d"]


class Conv3d(Module):
    """Convolution of volumes, (N, D, H, W, in) -> (N, depths, rows, columns, out).

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, dilation : int or (deep, down, across)
    padding : int, three or six numbers, or "same"
        Zeros; of six numbers those in front, behind, above, below, to the left and to the right.
    bias : bool
    seed : int, optional
    groups : int

    Examples
    --------
    >>> layer = nn.Conv3d(2, 4, (2, 3, 3), padding=1, seed=0)
    >>> layer(np.ones((2, 4, 5, 4, 2), np.float32)).shape
    (2, 5, 5, 4, 4)
    """

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
        kernel = sizes("Conv3d.kernel_size", kernel_size, 3)
        self.stride = sizes("Conv3d.stride", stride, 3)
        self.dilation = sizes("Conv3d.dilation", dilation, 3)
        self.in_channels, self.groups = in_channels, groups
        self._padding = Padding("Conv3d", padding, kernel, self.stride, self.dilation)
        share = self._padding.share(in_channels, out_channels, groups)
        rng, fan = generator(seed), kernel[0] * kernel[1] * kernel[2] * share
        self.weight = uniform(rng, (out_channels, *kernel, share), fan)
        self.bias = uniform(rng, (out_channels,), fan) if bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x (N, D, H, W, in) to (N, depths, rows, columns, out)."""
        check_last_axis(self, x, 5, self.in_channels)
        pad: Any = self._padding.of(x.shape[1:4])
        settings: Any = {"stride": self.stride, "dilation": self.dilation, "groups": self.groups}
        return conv3d(x, self.weight, self.bias, pad=pad, **settings)
