"""FPN: what images show at every place, by a residual trunk whose levels are added up.

T.-Y. Lin et al., Feature Pyramid Networks for Object Detection, arXiv 1612.03144; as a head of
segmentation A. Kirillov et al., Panoptic Feature Pyramid Networks, arXiv 1901.02446.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.models.resnet import ResidualBlock
from daskdl.nn import init
from daskdl.nn.conv.conv import Conv2d
from daskdl.nn.core.module import Module
from daskdl.nn.core.sequential import Sequential
from daskdl.nn.norm.batchnorm import BatchNorm
from daskdl.tensor import Tensor


class FPN(Module, pure=True):
    """Feature pyramid of residual blocks, (N, H, W, channels) -> (N, H, W, outputs), any H and W.

    Each level has half the rows and columns of the one before. From the coarsest on it is enlarged
    and added to the next finer one; the head looks at the finest.

    Parameters
    ----------
    channels, outputs : int
        Of the image and of the result: a score for each class.
    filters : sequence of int
        Of the residual blocks of each level, from the finest to the coarsest.
    width : int
        Channels of the levels that are added up.
    seed : int
        Of the initial weights, which are He's; biases are zeros.

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
