"""Norms over a batch, and of a sample by itself: layer, group, L2 and local response."""

from __future__ import annotations

import math
from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.norms.batchnorm import follow
from daskdl.nn.core.arguments import Sizes, check_axes, check_last_axis, sizes
from daskdl.nn.core.module import Module
from daskdl.nn.core.operation import _OfOperation
from daskdl.nn.core.parameter import Buffer, Parameter, filled
from daskdl.ops.norm.batchnorm import batch_norm, batch_norm_inference
from daskdl.ops.norm.norms import group_norm, layer_norm, normalize
from daskdl.tensor import Tensor

__all__ = [
    "BatchNorm",
    "GroupNorm",
    "LayerNorm",
    "LocalResponseNorm",
    "Normalize",
    "WithinChannelLRN",
]


class BatchNorm(Module, pure=True):
    """Normalise each channel over all other axes, (..., C) -> (..., C).

    Training uses the mean and variance of the batch (of each shard's part), and keeps running
    averages; inference uses the averages. S. Ioffe and C. Szegedy, arXiv 1502.03167.

    Parameters
    ----------
    channels : int
    eps : float
        Added to the variance.
    momentum : float
        Share of the newest batch in the running averages.
    affine : bool
        Whether to scale and shift by parameters.
    relu : bool
        Whether a ReLU follows, at no cost.
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
            return batch_norm_inference(
                x, mean.astype(x.dtype, copy=False), variance.astype(x.dtype, copy=False),
                self.weight, self.bias, residual, eps=self.eps, relu=self.relu,
            )  # fmt: skip
        y, statistics = batch_norm(
            x, self.weight, self.bias, residual, eps=self.eps, relu=self.relu
        )
        if statistics.rows:
            follow(mean, variance, statistics.mean, statistics.unbiased, self.momentum)
        return y


class LayerNorm(Module, pure=True):
    """Normalise each sample over its last axes, then scale and shift (arXiv 1607.06450).

    Parameters
    ----------
    shape : int or sequence of int
        Lengths of the last axes, which are normalised together; a number for the channels alone.
    eps : float
        Added to the variance.
    affine : bool
        Whether to scale and shift by parameters.
    """

    def __init__(self, shape: Sizes, eps: float = 1e-5, affine: bool = True) -> None:
        lengths = (shape,) if isinstance(shape, int) else shape
        self.shape, self.eps = sizes("LayerNorm.shape", lengths, len(lengths)), eps
        self.weight = Parameter(filled(self.shape, 1)) if affine else None
        self.bias = Parameter(filled(self.shape, 0)) if affine else None

    def forward(self, x: Any) -> Tensor:
        """Map x (..., shape...) to the same shape."""
        if tuple(x.shape[-len(self.shape) :]) != self.shape or not math.prod(self.shape):
            raise ShapeError(
                f"LayerNorm: expected an input whose last axes are {self.shape}, found "
                f"{tuple(x.shape)}"
                "; give the layer the shape of these axes"
            )
        return layer_norm(x, self.weight, self.bias, axes=len(self.shape), eps=self.eps)


class GroupNorm(Module, pure=True):
    """Normalise each sample's channels in groups, over all of its pixels (arXiv 1803.08494).

    Parameters
    ----------
    groups, channels : int
        Equal numbers of groups and channels make it instance normalisation.
    eps : float
        Added to the variance.
    affine : bool
        Whether to scale and shift by parameters.
    """

    def __init__(self, groups: int, channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        if groups < 1 or channels % groups:
            raise SettingsError(
                f"GroupNorm.groups: expected a divisor of the {channels} channels, found {groups}"
                "; take as many groups as divide them evenly"
            )
        self.groups, self.channels, self.eps = groups, channels, eps
        self.weight = Parameter(filled(channels, 1)) if affine else None
        self.bias = Parameter(filled(channels, 0)) if affine else None

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., C) to the same shape."""
        check_last_axis(self, x, None, self.channels)
        return group_norm(x, self.weight, self.bias, groups=self.groups, eps=self.eps)


class Normalize(Module, pure=True):
    """Divide each vector along the last axis by its Euclidean length, then scale each channel.

    With ``scale=20`` it is the layer after SSD's first feature map (W. Liu et al., ParseNet, arXiv
    1506.04579).

    Parameters
    ----------
    channels : int, optional
        Channels of the learned scale; by default there is no scale, and any number of channels.
    scale : float
        Initial scale.
    eps : float
        Least divisor.
    """

    def __init__(self, channels: int | None = None, scale: float = 1.0, eps: float = 1e-12) -> None:
        self.channels, self.eps = channels, eps
        self.weight = None if channels is None else Parameter(filled(channels, scale))

    def forward(self, x: Any) -> Tensor:
        """Map x (..., C) to the same shape."""
        if self.channels is not None:
            check_last_axis(self, x, None, self.channels)
        y: Tensor = normalize(x, eps=self.eps)
        return y if self.weight is None else y * self.weight


class LocalResponseNorm(_OfOperation, operation=ops.local_response_norm):
    """Divide each number by a power of the squares of its neighbours in channels.

    ``x * (k + alpha / size * sum of squares) ** -beta``, where the sum is over the ``size``
    channels around the number.
    """

    def __init__(
        self, size: int = 5, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
    ) -> None:
        if size < 1:
            raise SettingsError(f"LocalResponseNorm.size: expected at least 1, found {size}")
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k


class WithinChannelLRN(Module, pure=True):
    """Divide each pixel by a power of the mean square of the pixels around it, in its channel.

    ``x * (1 + alpha * mean of squares) ** -beta``, where the mean is over ``size`` x ``size``
    pixels; pixels beyond the edges count as 0, as in Caffe.
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
        return ops.multiply(x, scale)
