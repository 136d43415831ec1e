"""The convolution layer over sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl.nn.arguments import check_last_axis, sizes
from daskdl.nn.initialise import generator, uniform
from daskdl.nn.module import Module
from daskdl.nn.padding import Padding
from daskdl.ops.conv1d import conv1d
from daskdl.tensor import Tensor

__all__ = ["Conv1d"]


class Conv1d(Module):
    """Convolution of sequences, (N, T, in) -> (N, steps, out).

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride : int
    padding : int, (before, behind), "same" or "causal"
        Steps of zeros; "causal" puts all of them before, so that no result sees a later step.
    bias : bool
    seed : int, optional
        Of the initial weights.
    dilation, groups : int

    Examples
    --------
    >>> layer = nn.Conv1d(4, 8, 3, padding="causal", dilation=2, seed=0)
    >>> layer(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int | Sequence[int] | str = 0,
        bias: bool = True,
        seed: int | None = None,
        dilation: int = 1,
        groups: int = 1,
    ) -> None:
        (self.kernel,) = sizes("Conv1d.kernel_size", kernel_size, 1)
        (self.stride,) = sizes("Conv1d.stride", stride, 1)
        (self.dilation,) = sizes("Conv1d.dilation", dilation, 1)
        self.in_channels, self.groups = in_channels, groups
        self._padding = Padding("Conv1d", padding, [self.kernel], [self.stride], [self.dilation])
        share = self._padding.share(in_channels, out_channels, groups)
        rng, fan = generator(seed), self.kernel * share
        self.weight = uniform(rng, (out_channels, self.kernel, share), fan)
        self.bias = uniform(rng, (out_channels,), fan) if bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x (N, T, in) to (N, steps, out)."""
        check_last_axis(self, x, 3, self.in_channels)
        before, behind = self._padding.of(x.shape[1:2])
        y: Tensor = conv1d(
            x, self.weight, self.bias, stride=self.stride, pad=(before, behind),
            dilation=self.dilation, groups=self.groups,
        )  # fmt: skip
        return y
