"""Layers that add or multiply by normal numbers, drawn anew in each forward pass of training."""

from __future__ import annotations

import math
from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.draws import generator_of_draw
from daskdl.nn.module import Module
from daskdl.tensor import Array, Tensor

__all__ = ["GaussianDropout", "GaussianNoise", "GaussianSampler"]


class GaussianDropout(Module):
    """Multiply by normal numbers of mean 1 and variance rate / (1 - rate); in inference by none.

    N. Srivastava et al., JMLR 15 (2014), section 10.

    Examples
    --------
    >>> nn.GaussianDropout()(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 4)
    """

    def __init__(self, rate: float = 0.5) -> None:
        if not 0 <= rate < 1:
            raise SettingsError(
                f"GaussianDropout: expected 0 <= rate < 1, found {rate!r}"
                "; rate is the part that would be dropped"
            )
        self.rate = rate

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        if not self.training or not self.rate:
            return ops.reshape(x, shape=tuple(x.shape))
        spread = math.sqrt(self.rate / (1 - self.rate))
        return ops.multiply(x, _normal(x, spread) + 1)


class GaussianNoise(Module):
    """Add normal numbers of standard deviation ``sigma``; in inference none.

    Examples
    --------
    >>> nn.GaussianNoise()(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 4)
    """

    def __init__(self, sigma: float = 0.1) -> None:
        if not sigma >= 0:
            raise SettingsError(
                f"GaussianNoise: expected sigma >= 0, found {sigma!r}; give a standard deviation"
            )
        self.sigma = sigma

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        if not self.training or not self.sigma:
            return ops.reshape(x, shape=tuple(x.shape))
        return ops.add(x, _normal(x, self.sigma))


class GaussianSampler(Module):
    """Draw from normal distributions: (mean, log of the variance) -> mean + deviation * draw.

    In inference the mean. D. Kingma and M. Welling, arXiv 1312.6114.

    Examples
    --------
    >>> nn.GaussianSampler()(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)).shape
    (2, 3)
    """

    def forward(self, mean: Any, log_variance: Any = None) -> Tensor:
        """Map two arrays of one shape, or a pair of them, to one of the same shape."""
        if log_variance is None:
            mean, log_variance = mean
        if mean.shape != log_variance.shape:
            raise ShapeError(
                f"GaussianSampler: expected two inputs of one shape, found {mean.shape} and "
                f"{log_variance.shape}"
            )
        if not self.training:
            return ops.reshape(mean, shape=tuple(mean.shape))
        deviation = ops.exp(ops.multiply(log_variance, 0.5))
        y: Tensor = ops.add(mean, deviation * _normal(mean, 1.0))
        return y


def _normal(x: Any, deviation: float) -> Array:
    draws = generator_of_draw().standard_normal(x.shape, x.dtype)
    return draws * x.dtype.type(deviation)
