"""Dropout layers: each forward pass of training leaves out other numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.nn.draws import next_draw
from daskdl.nn.module import Module
from daskdl.ops.dropout import dropout
from daskdl.tensor import Array, Tensor

__all__ = ["AlphaDropout", "Dropout", "SpatialDropout"]


class Dropout(Module):
    """Set a part of all numbers to zero and scale the others up; in inference nothing.

    N. Srivastava et al., JMLR 15 (2014). The draws are those of :func:`daskdl.nn.draws.drawing`,
    which a Trainer seeds for each iteration and shard.

    Parameters
    ----------
    rate : float
        The part, from 0 to 1.

    Examples
    --------
    >>> nn.Dropout()(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 4)
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
        y: Tensor = dropout(x, rate=self.rate if self.training else 0, seed=seed, counter=counter)
        return y


class SpatialDropout(Dropout):
    """Set whole channels of a sample to zero and scale the others up, (N, ..., C) -> the same.

    Of sequences, images and volumes alike (J. Tompson et al., arXiv 1411.4280).

    Examples
    --------
    >>> nn.SpatialDropout()(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 4)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape (N, ..., C) to the same shape."""
        if not self.training or not self.rate:
            return ops.reshape(x, shape=tuple(x.shape))
        ones = (len(x.shape) - 2) * (1,)
        y: Tensor = ops.multiply(x, _kept((x.shape[0], *ones, x.shape[-1]), x.dtype, self.rate))
        return y


class AlphaDropout(Dropout):
    """Set a part of all numbers to SELU's value at -infinity; mean and variance stay.

    G. Klambauer et al., Self-Normalizing Neural Networks, arXiv 1706.02515.

    Examples
    --------
    >>> nn.AlphaDropout()(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 4)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        if not self.training or not self.rate:
            return ops.reshape(x, shape=tuple(x.shape))
        if self.rate == 1:
            return ops.multiply(x, 0.0)
        least = -1.7580993408473766
        scale = ((1 - self.rate) * (1 + self.rate * least**2)) ** -0.5
        kept = _kept(tuple(x.shape), x.dtype, self.rate) > 0
        factor = (scale * kept).astype(x.dtype)
        shift = (scale * least * (~kept - self.rate)).astype(x.dtype)
        y: Tensor = ops.multiply(x, factor) + shift
        return y


def _kept(shape: tuple[int, ...], dtype: Any, rate: float) -> Array:
    """Return the factors that drop a part of an array."""
    seed, counter = next_draw()
    y: Tensor = dropout(np.ones(shape, dtype), rate=rate, seed=seed, counter=counter)
    return y.data
