"""The convolution layer over channels-last images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl.nn.arguments import Sizes, check_last_axis, pair
from daskdl.nn.initialise import generator, uniform
from daskdl.nn.module import Module
from daskdl.nn.padding import Padding
from daskdl.ops.conv2d import conv2d
from daskdl.tensor import Tensor

__all__ = ["Conv2d"]


class Conv2d(Module):
    """Convolution of images, (N, H, W, in) -> (N, rows, columns, out).

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride : int or (down, across)
    padding : int, (down, across), (above, below, left, right) or "same"
        Zeros on either side. "same" gives an image of the input's size, divided by the stride and
        rounded up; where that takes an odd number of zeros, the odd one goes below and to the
        right, as TensorFlow's.
    bias : bool
    seed : int, optional
        Of the initial weights.
    dilation : int or (down, across)
        Pixels from one tap of the kernel to the next.
    groups : int
        Each has its share of the channels; ``in_channels`` of them make it depthwise.

    Examples
    --------
    >>> layer = nn.Conv2d(4, 8, 3, 2, "same", groups=2, seed=0)
    >>> layer(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 3, 3, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | Sequence[int] | str = 0,
        bias: bool = True,
        seed: int | None = None,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> None:
        self.kernel = pair("Conv2d.kernel_size", kernel_size)
        self.stride = pair("Conv2d.stride", stride)
        self.dilation = pair("Conv2d.dilation", dilation)
        self.in_channels, self.groups = in_channels, groups
        self._padding = Padding("Conv2d", padding, self.kernel, self.stride, self.dilation)
        share = self._padding.share(in_channels, out_channels, groups)
        rng, fan = generator(seed), self.kernel[0] * self.kernel[1] * share
        self.weight = uniform(rng, (out_channels, *self.kernel, share), fan)
        self.bias = uniform(rng, (out_channels,), fan) if bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, in) to (N, rows, columns, out)."""
        check_last_axis(self, x, 4, self.in_channels)
        above, below, left, right = self._padding.of(x.shape[1:3])
        y: Tensor = conv2d(
            x, self.weight, self.bias, stride=self.stride, pad=(above, below, left, right),
            dilation=self.dilation, groups=self.groups,
        )  # fmt: skip
        return y
