"""U-Net: what images or volumes show at every place, from coarse and fine views of them.

O. Ronneberger, P. Fischer and T. Brox, U-Net: Convolutional Networks for Biomedical Image
Segmentation, arXiv 1505.04597; O. Cicek et al., 3D U-Net, arXiv 1606.06650.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.nn.conv.conv import Conv2d, Conv3d
from daskdl.nn.conv.conv_transpose import ConvTranspose2d, ConvTranspose3d
from daskdl.nn.core.module import Module
from daskdl.nn.core.sequential import Sequential
from daskdl.nn.norm.batchnorm import BatchNorm
from daskdl.nn.pool.pooling import MaxPool2d, MaxPool3d
from daskdl.tensor import Tensor


class UNet(Module, pure=True):
    """U-Net, (N, H, W, channels) -> (N, H, W, outputs), or of volumes (N, D, H, W, channels).

    Convolutions are padded, so that the result is as large as the image, of any size that can be
    halved often enough; and each is followed by batch norm. A row that halving leaves over is
    seen by the finer levels alone.

    Parameters
    ----------
    channels, outputs : int
        Of the image and of the result: a score for each class.
    filters : sequence of int
        Of each level, from the finest to the coarsest, whose number is the depth.
    axes : 2 or 3
    seed : int
        Of the initial weights.

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
