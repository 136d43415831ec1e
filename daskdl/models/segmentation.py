"""Networks for segmentation, with scores for every pixel: FPN and U-Net."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.models.resnet import ResidualBlock
from daskdl.nn import init
from daskdl.nn.conv.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from daskdl.nn.core.module import Module
from daskdl.nn.core.sequential import Sequential
from daskdl.nn.norm import BatchNorm
from daskdl.nn.pool import MaxPool2d, MaxPool3d
from daskdl.tensor import Tensor


class FPN(Module, pure=True):
    """Feature pyramid of residual blocks, (N, H, W, channels) -> (N, H, W, outputs), any H and W.

    Each level has half the rows and columns of the one before. Beginning with the coarsest, each
    level is enlarged and added to the next finer one; the head reads the finest.

    Parameters
    ----------
    channels, outputs : int
        Channels of the image, and of the result: a score for each class.
    filters : sequence of int
        Channels of the residual blocks of each level, from the finest to the coarsest.
    width : int
        Channels of the levels when they are added.
    seed : int
        Seed of the initial weights (He); biases are zeros.

    Examples
    --------
    >>> model = FPN(3, 2, filters=(4, 8, 16), width=8)
    >>> model.predict(np.zeros((1, 37, 50, 3), np.float32)).shape
    (1, 37, 50, 2)
    """

    def __init__(
        self,
        channels: int,
        outputs: int,
        filters: Sequence[int] = (32, 64, 128, 256),
        width: int = 64,
        seed: int = 0,
    ) -> None:
        if not filters:
            raise SettingsError(f"FPN: expected filters of a level at least, found {filters!r}")
        first = filters[0]
        self.stem = Sequential(
            Conv2d(channels, first, 3, padding=1, bias=False), BatchNorm(first, relu=True)
        )
        below = (first, *filters[:-1])
        self.levels = [
            ResidualBlock(a, b, 2 if i else 1)
            for i, (a, b) in enumerate(zip(below, filters, strict=True))
        ]
        self.sides = [Conv2d(n, width, 1) for n in filters]
        scores = Conv2d(width, outputs, 1)
        self.head = Sequential(
            Conv2d(width, width, 3, padding=1, bias=False), BatchNorm(width, relu=True), scores
        )
        for i, parameter in enumerate(self.parameters()):
            if parameter.ndim == 4:
                init.kaiming_normal(parameter, nonlinearity="relu", seed=1000 * seed + i)
        for bias in (layer.bias for layer in (*self.sides, scores)):
            if bias is not None:
                init.zeros(bias)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, channels) to scores (N, H, W, outputs)."""
        x, levels = self.stem(x), []
        for block, side in zip(self.levels, self.sides, strict=True):
            x = block(x)
            levels.append(side(x))
        y = levels.pop()
        for finer in levels[::-1]:
            rows, columns = (slice(n) for n in finer.shape[1:3])
            y = ops.repeat(ops.repeat(y, times=2, axis=1), times=2, axis=2)
            y = finer + ops.take(y, index=(slice(None), rows, columns))
        return self.head(y)


class UNet(Module, pure=True):
    """U-Net, (N, H, W, channels) -> (N, H, W, outputs), or for volumes (N, D, H, W, channels).

    Convolutions are padded, so that the result has the image's size; batch norm follows each. The
    image must be large enough for a halving per level. If a length is odd, only the finer levels
    see its last row.

    Parameters
    ----------
    channels, outputs : int
        Channels of the image, and of the result: a score for each class.
    filters : sequence of int
        Channels of each level, from the finest to the coarsest; their number is the depth.
    axes : 2 or 3
    seed : int
        Seed of the initial weights.

    Examples
    --------
    >>> model = UNet(3, 2, filters=(4, 8, 16))
    >>> model.predict(np.zeros((1, 37, 50, 3), np.float32)).shape
    (1, 37, 50, 2)
    >>> UNet(1, 2, (4, 8), axes=3).predict(np.zeros((1, 8, 9, 10, 1), np.float32)).shape
    (1, 8, 9, 10, 2)
    """

    def __init__(
        self,
        channels: int,
        outputs: int,
        filters: Sequence[int] = (32, 64, 128, 256),
        axes: int = 2,
        seed: int = 0,
    ) -> None:
        if axes not in (2, 3) or not filters:
            raise SettingsError(
                f"UNet: expected axes 2 or 3 and filters of a level at least, found {axes!r} and "
                f"{filters!r}"
            )
        conv, transpose = (Conv2d, ConvTranspose2d) if axes == 2 else (Conv3d, ConvTranspose3d)
        self.pool = MaxPool2d(2) if axes == 2 else MaxPool3d(2)
        seeds = iter(range(seed * 1000, seed * 1000 + 1000))

        def block(below: int, width: int) -> Sequential:
            layers: list[Module] = []
            for i in (below, width):
                layers.append(conv(i, width, 3, padding=1, bias=False, seed=next(seeds)))
                layers.append(BatchNorm(width, relu=True))
            return Sequential(*layers)

        finer, coarser = filters[:-1], filters[1:]
        self.down = [block(*pair) for pair in zip((channels, *finer), filters, strict=True)]
        self.up = [
            transpose(b, a, 2, stride=2, seed=next(seeds))
            for a, b in zip(finer, coarser, strict=True)
        ]
        self.both = [block(2 * a, a) for a in finer]
        self.head = conv(filters[0], outputs, 1, seed=next(seeds))

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., channels) to scores (N, ..., outputs)."""
        levels: list[Any] = []
        for i, block in enumerate(self.down):
            x = block(self.pool(x) if i else x)
            levels.append(x)
        for fine, up, block in zip(levels[-2::-1], self.up[::-1], self.both[::-1], strict=True):
            y = up(x)
            behind = [a - b for a, b in zip(fine.shape[1:-1], y.shape[1:-1], strict=True)]
            if any(behind):
                y = ops.pad(y, widths=[(0, 0), *((0, n) for n in behind), (0, 0)])
            x = block(ops.concatenate(fine, y))
        return self.head(x)
