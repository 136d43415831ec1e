"""ResNet-18, 34, 50, 101 and 152: blocks of convolutions that add to their input.

K. He, X. Zhang, S. Ren and J. Sun, Deep Residual Learning for Image Recognition, arXiv 1512.03385.
Blocks of three convolutions have their stride in the 3x3 one, as in torchvision and in most
published weights.
"""

from __future__ import annotations

from typing import Any

from daskdl.errors import SettingsError
from daskdl.models.vgg import initialise
from daskdl.nn import init
from daskdl.nn.conv.conv import Conv2d
from daskdl.nn.core.module import Module
from daskdl.nn.linear import Linear
from daskdl.nn.norm import BatchNorm
from daskdl.nn.pool import GlobalAvgPool, MaxPool2d
from daskdl.tensor import Tensor

#: Blocks in each of the four stages, and whether they are bottlenecks of three convolutions.
DEPTHS = {
    18: ((2, 2, 2, 2), False),
    34: ((3, 4, 6, 3), False),
    50: ((3, 4, 6, 3), True),
    101: ((3, 4, 23, 3), True),
    152: ((3, 8, 36, 3), True),
}
STEMS = ("imagenet", "small")


class ResidualBlock(Module, pure=True):
    """Two 3x3 convolutions and a shortcut, (N, H, W, below) -> (N, H / stride, ..., width).

    The first convolution and the shortcut have the stride; the shortcut is a 1x1 convolution if
    the shapes differ.
    """

    expansion = 1

    def __init__(self, below: int, width: int, stride: int = 1) -> None:
        self.conv1 = Conv2d(below, width, 3, stride, padding=1, bias=False)
        self.norm1 = BatchNorm(width, relu=True)
        self.conv2 = Conv2d(width, width, 3, padding=1, bias=False)
        self.last = BatchNorm(width, relu=True)
        self.shortcut = _shortcut(below, width, stride)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, below) to (N, rows, columns, width)."""
        y = self.norm1(self.conv1(x))
        return self.last(self.conv2(y), x if self.shortcut is None else self.shortcut(x))


class BottleneckBlock(Module, pure=True):
    """A 1x1, a 3x3 and a 1x1 convolution and a shortcut; the output has 4 * width channels.

    The 3x3 convolution and the shortcut have the stride.
    """

    expansion = 4

    def __init__(self, below: int, width: int, stride: int = 1) -> None:
        above = self.expansion * width
        self.conv1 = Conv2d(below, width, 1, bias=False)
        self.norm1 = BatchNorm(width, relu=True)
        self.conv2 = Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.norm2 = BatchNorm(width, relu=True)
        self.conv3 = Conv2d(width, above, 1, bias=False)
        self.last = BatchNorm(above, relu=True)
        self.shortcut = _shortcut(below, above, stride)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, below) to (N, rows, columns, 4 * width)."""
        y = self.norm1(self.conv1(x))
        y = self.norm2(self.conv2(y))
        return self.last(self.conv3(y), x if self.shortcut is None else self.shortcut(x))


class Shortcut(Module, pure=True):
    """A 1x1 convolution with batch norm, for blocks whose input and result differ in shape."""

    def __init__(self, below: int, above: int, stride: int) -> None:
        self.conv = Conv2d(below, above, 1, stride, bias=False)
        self.norm = BatchNorm(above)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, below) to (N, rows, columns, above)."""
        return self.norm(self.conv(x))


def _shortcut(below: int, above: int, stride: int) -> Shortcut | None:
    return None if stride == 1 and below == above else Shortcut(below, above, stride)


class ResNet(Module, pure=True):
    """A residual network of 18, 34, 50, 101 or 152 layers.

    Parameters
    ----------
    depth : int
    classes : int
    stem : "imagenet" or "small"
        Layers before the blocks: a 7x7 convolution and a pooling that leave a quarter of the rows
        and columns, or for pictures of about 32x32 pixels a 3x3 convolution that keeps all.
    width : int
        Channels of the first stage; each later stage doubles them.
    channels : int
        Channels of the pictures.
    zero_last : bool
        Whether the weight of each block's last batch norm starts at 0, so that the block begins as
        its shortcut (P. Goyal et al., arXiv 1706.02677).
    seed : int
        Seed of the initial weights: He's for convolutions, normal with deviation 0.01 for the last
        layer, whose bias starts at 0.

    Raises
    ------
    SettingsError
        When the depth or stem is unknown.

    Examples
    --------
    >>> sum(p.data.size for p in ResNet(18).parameters())
    11689512
    """

    def __init__(
        self,
        depth: int = 50,
        classes: int = 1000,
        stem: str = "imagenet",
        width: int = 64,
        channels: int = 3,
        zero_last: bool = True,
        seed: int = 0,
    ) -> None:
        if depth not in DEPTHS or stem not in STEMS:
            raise SettingsError(
                f"ResNet: expected depth in {tuple(DEPTHS)} and stem in {STEMS}, found depth="
                f"{depth!r} and stem={stem!r}"
            )
        counts, bottleneck = DEPTHS[depth]
        block = BottleneckBlock if bottleneck else ResidualBlock
        small = stem == "small"
        self.conv = Conv2d(
            channels, width, 3 if small else 7, 1 if small else 2, 1 if small else 3, bias=False
        )
        self.norm = BatchNorm(width, relu=True)
        self.pool = None if small else MaxPool2d(3, 2, padding=1)
        self.blocks: list[ResidualBlock | BottleneckBlock] = []
        below = width
        for stage, count in enumerate(counts):
            for i in range(count):
                stride = 2 if stage and not i else 1
                self.blocks.append(block(below, width << stage, stride))
                below = block.expansion * (width << stage)
        self.average = GlobalAvgPool()
        self.linear = Linear(below, classes)
        initialise(self, seed)
        init.normal(self.linear.weight, 0, 0.01, seed=1000 * seed + 999)
        for last in (block.last for block in self.blocks if zero_last):
            if last.weight is not None:
                init.zeros(last.weight)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, channels) to logits (N, classes)."""
        x = self.norm(self.conv(x))
        if self.pool is not None:
            x = self.pool(x)
        for block in self.blocks:
            x = block(x)
        return self.linear(self.average(x))
