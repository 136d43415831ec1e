"""Local response normalisation layers."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.nn.arguments import check_axes
from daskdl.nn.module import Module
from daskdl.tensor import Tensor

__all__ = ["LocalResponseNorm", "WithinChannelLRN"]


class LocalResponseNorm(Module):
    """Divide each number by a power of the squares of its neighbours in channels.

    ``x * (k + alpha / size * sum of squares) ** -beta``, the sum over ``size`` channels around.

    Examples
    --------
    >>> nn.LocalResponseNorm(3, alpha=0.5)(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 6, 5, 4)
    """

    def __init__(
        self, size: int = 5, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
    ) -> None:
        if size < 1:
            raise SettingsError(f"LocalResponseNorm.size: expected at least 1, found {size}")
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Any) -> Tensor:
        """Map x (..., C) to the same shape."""
        y: Tensor = ops.local_response_norm(
            x, size=self.size, alpha=self.alpha, beta=self.beta, k=self.k
        )
        return y


class WithinChannelLRN(Module):
    """Divide each pixel by a power of the mean square of the pixels around it, in its channel.

    ``x * (1 + alpha * mean of squares) ** -beta``, the mean over ``size`` x ``size`` pixels of
    which those beyond the edges count as 0, as Caffe's.

    Examples
    --------
    >>> nn.WithinChannelLRN(3)(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 6, 5, 4)
    """

    def __init__(self, size: int = 5, alpha: float = 1.0, beta: float = 0.75) -> None:
        if size < 1 or size % 2 == 0:
            raise SettingsError(
                f"WithinChannelLRN.size: expected an odd number, found {size}"
                "; take an odd one, which has a middle"
            )
        self.size, self.alpha, self.beta = size, alpha, beta

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, C) to the same shape."""
        check_axes(self, x, "N H W C")
        squares = ops.avg_pool2d(
            ops.square(x),
            kernel_size=(self.size, self.size),
            stride=(1, 1),
            pad=(self.size // 2,) * 4,
        )
        scale = ops.power(squares * self.alpha + 1.0, exponent=-self.beta)
        y: Tensor = ops.multiply(x, scale)
        return y
