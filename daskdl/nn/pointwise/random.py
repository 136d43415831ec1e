"""Layers for training: dropout, noise, penalties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.module import Module
from daskdl.nn.core.operation import _OfOperation
from daskdl.nn.core.state import generator_of_draw, next_draw
from daskdl.ops.pointwise.elementwise import dropout
from daskdl.tensor import Array, Tensor, op

__all__ = [
    "ActivityRegularization",
    "AlphaDropout",
    "Dropout",
    "GaussianDropout",
    "GaussianNoise",
    "GaussianSampler",
    "NegativeEntropyPenalty",
    "SpatialDropout",
]


class Dropout(Module, pure=True):
    """Sets a share of all numbers to zero and scales the others up; inference returns the input.

    N. Srivastava et al., JMLR 15 (2014). A Trainer seeds the draws
    (:func:`daskdl.nn.core.state.drawing`) for each iteration and shard.

    Parameters
    ----------
    rate : float
        The share, from 0 to 1.
    """

    def __init__(self, rate: float = 0.5) -> None:
        if not 0 <= rate <= 1:
            raise SettingsError(
                f"{type(self).__name__}: expected 0 <= rate <= 1, found {rate!r}"
                "; rate is the part that is dropped"
            )
        self.rate = rate

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        seed, counter = next_draw() if self.training else (0, 0)
        return dropout(x, rate=self.rate if self.training else 0, seed=seed, counter=counter)


class SpatialDropout(Dropout):
    """Sets whole channels of a sample to zero and scales the others up, (N, ..., C) -> the same.

    It takes sequences, images and volumes (J. Tompson et al., arXiv 1411.4280).
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape (N, ..., C) to the same shape."""
        if not self.training or not self.rate:
            return ops.reshape(x, shape=tuple(x.shape))
        ones = (len(x.shape) - 2) * (1,)
        return ops.multiply(x, _mask((x.shape[0], *ones, x.shape[-1]), x.dtype, self.rate))


class AlphaDropout(Dropout):
    """Sets a share of all numbers to SELU's value at -infinity; keeps mean and variance.

    G. Klambauer et al., Self-Normalizing Neural Networks, arXiv 1706.02515.
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        if not self.training or not self.rate:
            return ops.reshape(x, shape=tuple(x.shape))
        if self.rate == 1:
            return ops.multiply(x, 0.0)
        least = -1.7580993408473766
        scale = ((1 - self.rate) * (1 + self.rate * least**2)) ** -0.5
        mask = _mask(tuple(x.shape), x.dtype, self.rate) > 0
        factor = (scale * mask).astype(x.dtype)
        shift = (scale * least * (~mask - self.rate)).astype(x.dtype)
        return ops.multiply(x, factor) + shift


def _mask(shape: tuple[int, ...], dtype: Any, rate: float) -> Array:
    """Return the factors that drop a share of an array."""
    seed, counter = next_draw()
    y: Tensor = dropout(np.ones(shape, dtype), rate=rate, seed=seed, counter=counter)
    return y.data


class GaussianDropout(Module, pure=True):
    """Multiplies by normal numbers of mean 1 and variance rate / (1 - rate) in training.

    N. Srivastava et al., JMLR 15 (2014), section 10.
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


class GaussianNoise(Module, pure=True):
    """Adds normal numbers of standard deviation ``sigma`` in training."""

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


class GaussianSampler(Module, pure=True):
    """Draws from normal distributions: (mean, log of the variance) -> mean + deviation * draw.

    In inference it returns the mean. D. Kingma and M. Welling, arXiv 1312.6114.
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
        return ops.add(mean, deviation * _normal(mean, 1.0))


def _normal(x: Any, deviation: float) -> Array:
    draws = generator_of_draw().standard_normal(x.shape, x.dtype)
    return draws * x.dtype.type(deviation)


@op
def _activity(x: Array, *, l1: float, l2: float) -> Any:
    def backward(dy: Array) -> Any:
        return (dy + (l1 * np.sign(x) + 2 * l2 * x) / len(x),)

    return x, backward


@op
def _negative_entropy(p: Array, *, beta: float) -> Any:
    def backward(dy: Array) -> Any:
        return (dy + beta * (np.log(p) + 1) / len(p),)

    return p, backward


class ActivityRegularization(_OfOperation, operation=_activity):
    """Returns its input; in training adds the gradient of an L1 and an L2 penalty on it.

    The penalty is ``sum(l1 * abs(x) + l2 * x**2) / N`` over a batch of N samples, a mean over
    samples like all losses. The loss that a fit shows does not include it.

    Parameters
    ----------
    l1, l2 : float
        Factors of the penalties, 0 or more.
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        if not (l1 >= 0 and l2 >= 0):
            raise SettingsError(
                f"ActivityRegularization: expected l1 >= 0 and l2 >= 0, found {l1} and {l2}"
            )
        self.l1, self.l2 = l1, l2


class NegativeEntropyPenalty(_OfOperation, operation=_negative_entropy):
    """Returns probabilities; training adds the gradient of their negative entropy times ``beta``.

    The penalty ``beta * sum(p * log(p)) / N`` keeps a policy from becoming certain too early (R. J.
    Williams and J. Peng, Connection Science 3, 1991).

    Parameters
    ----------
    beta : float
    """

    beta: float = 0.01
