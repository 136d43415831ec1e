"""The convolution layer over channels-last images."""

from __future__ import annotations

from typing import Any

from daskdl.errors import ShapeError
from daskdl.nn.initialise import generator, uniform
from daskdl.nn.module import Module, check_last_axis, pair
from daskdl.ops.conv2d import conv2d
from daskdl.tensor import Tensor


class Conv2d(Module):
    """Convolution of images, (N, H, W, in) -> (N, rows, columns, out).

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride : int or (down, across)
    padding : int, (down, across) or "same"
        Zeros on either side. "same" keeps the size and asks for stride 1; under an even kernel the
        odd zero goes below and to the right.
    bias : bool
    seed : int, optional
        Of the initial weights.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str = 0,
        bias: bool = True,
        seed: int | None = None,
    ) -> None:
        kernel = pair("Conv2d.kernel_size", kernel_size)
        self.stride = pair("Conv2d.stride", stride)
        self.in_channels, self.kernel = in_channels, kernel
        if padding == "same":
            if self.stride != (1, 1):
                raise ShapeError(f'Conv2d: padding="same" expects stride 1, found {stride!r}')
            down, across = kernel[0] - 1, kernel[1] - 1
            self.pad = (down // 2, down - down // 2, across // 2, across - across // 2)
        else:
            down, across = pair("Conv2d.padding", padding, least=0)  # type: ignore[arg-type]
            self.pad = (down, down, across, across)
        rng, fan = generator(seed), kernel[0] * kernel[1] * in_channels
        self.weight = uniform(rng, (out_channels, *kernel, in_channels), fan)
        self.bias = uniform(rng, (out_channels,), fan) if bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, in) to (N, rows, columns, out)."""
        check_last_axis(self, x, 4, self.in_channels)
        height, width = x.shape[1] + sum(self.pad[:2]), x.shape[2] + sum(self.pad[2:])
        if height < self.kernel[0] or width < self.kernel[1]:
            raise ShapeError(
                f"Conv2d: expected an image of at least {self.kernel} after padding, "
                f"found {(height, width)}"
            )
        return conv2d(x, self.weight, self.bias, stride=self.stride, pad=self.pad)
