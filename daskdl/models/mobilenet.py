"""MobileNet's trunk: depthwise convolutions, and 1x1 convolutions that mix channels.

A. G. Howard et al., MobileNets, arXiv 1704.04861.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl.nn.conv.conv import Conv2d
from daskdl.nn.core.module import Module
from daskdl.nn.norm import BatchNorm
from daskdl.tensor import Tensor

#: Channels and stride of each block of table 1, at full width.
BLOCKS = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
    (512, 1), (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1),
)  # fmt: skip


class DepthwiseBlock(Module, pure=True):
    """A 3x3 depthwise convolution and a 1x1 convolution, each with batch norm and ReLU."""

    def __init__(self, below: int, above: int, stride: int = 1) -> None:
        self.depthwise = Conv2d(below, below, 3, stride, padding=1, bias=False, groups=below)
        self.norm1 = BatchNorm(below, relu=True)
        self.pointwise = Conv2d(below, above, 1, bias=False)
        self.norm2 = BatchNorm(above, relu=True)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, below) to (N, H / stride, W / stride, above)."""
        x = self.norm1(self.depthwise(x))
        return self.norm2(self.pointwise(x))


class ConvolutionBlock(Module, pure=True):
    """A convolution, padded by half its size, with batch norm and ReLU."""

    def __init__(
        self, below: int, above: int, size: int = 3, stride: int = 1, eps: float = 1e-5
    ) -> None:
        self.conv = Conv2d(below, above, size, stride, padding=size // 2, bias=False)
        self.norm = BatchNorm(above, eps, relu=True)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, below) to (N, rows, columns, above)."""
        return self.norm(self.conv(x))


class MobileNetTrunk(Module, pure=True):
    """MobileNet's blocks; it returns the feature maps of some of them.

    Parameters
    ----------
    width : float
        Channels as a share of the paper's, rounded to multiples of 8.
    blocks : int
        Number of blocks, up to thirteen.
    taps : sequence of int
        Blocks, from 0, whose results are returned.
    channels : int
        Channels of the pictures.

    Examples
    --------
    >>> trunk = MobileNetTrunk(width=0.25, blocks=4, taps=(1, 3))
    >>> [m.shape for m in trunk(np.zeros((1, 32, 32, 3), np.float32))], trunk.widths
    ([(1, 8, 8, 32), (1, 4, 4, 64)], [32, 64])
    """

    def __init__(
        self, width: float = 1.0, blocks: int = 13, taps: Sequence[int] = (12,), channels: int = 3
    ) -> None:
        self._taps = tuple(taps)
        below = _channels(32, width)
        self.stem = ConvolutionBlock(channels, below, 3, 2)
        self.blocks: list[DepthwiseBlock] = []
        for full, stride in BLOCKS[:blocks]:
            self.blocks.append(DepthwiseBlock(below, _channels(full, width), stride))
            below = _channels(full, width)
        #: Channels of each returned map.
        self.widths = [_channels(BLOCKS[tap][0], width) for tap in self._taps]

    def forward(self, x: Any) -> tuple[Tensor, ...]:
        """Map x (N, H, W, C) to a tuple of maps (N, rows, columns, width), one for each tap."""
        x, maps = self.stem(x), []
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i in self._taps:
                maps.append(x)
        return tuple(maps)


def _channels(full: int, width: float) -> int:
    return max(8, round(full * width / 8) * 8)
