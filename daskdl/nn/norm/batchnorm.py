"""The batch normalisation layer."""

from __future__ import annotations

from typing import Any

from daskdl.kernels.norms.batchnorm import follow
from daskdl.nn.core.arguments import check_last_axis
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import Buffer, Parameter, filled
from daskdl.ops.norm.batchnorm import batch_norm, batch_norm_inference
from daskdl.tensor import Tensor

__all__ = ["BatchNorm"]


class BatchNorm(Module, pure=True):
    """Normalise each channel over all other axes, (..., C) -> (..., C).

    In training by the mean and variance of the batch (of a shard, where several train), of which it
    keeps running averages; in inference by these. S. Ioffe and C. Szegedy, arXiv 1502.03167.

    Parameters
    ----------
    channels : int
    eps : float
        Is added to the variance.
    momentum : float
        Share of the newest batch in the running averages.
    affine : bool
        Whether to scale and shift by parameters.
    relu : bool
        Whether a ReLU follows, which then costs nothing.
    """

    def __init__(
        self,
        channels: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        relu: bool = False,
    ) -> None:
        self.channels, self.eps, self.momentum, self.relu = channels, eps, momentum, relu
        self.weight = Parameter(filled(channels, 1)) if affine else None
        self.bias = Parameter(filled(channels, 0)) if affine else None
        self.running_mean = Buffer(filled(channels, 0))
        self.running_variance = Buffer(filled(channels, 1))

    def forward(self, x: Any, residual: Any = None) -> Tensor:
        """Map x (..., C) to the same shape; a residual of that shape is added before the ReLU."""
        check_last_axis(self, x, None, self.channels)
        mean, variance = self.running_mean.data, self.running_variance.data
        if not self.training:
            y: Tensor = batch_norm_inference(
                x, mean.astype(x.dtype, copy=False), variance.astype(x.dtype, copy=False),
                self.weight, self.bias, residual, eps=self.eps, relu=self.relu,
            )  # fmt: skip
            return y
        y, statistics = batch_norm(
            x, self.weight, self.bias, residual, eps=self.eps, relu=self.relu
        )
        if statistics.rows:
            follow(mean, variance, statistics.mean, statistics.unbiased, self.momentum)
        return y
