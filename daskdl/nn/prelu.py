"""Rectifiers whose slopes are learned or drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.nn.arguments import check_last_axis
from daskdl.nn.draws import generator_of_draw
from daskdl.nn.initialise import filled
from daskdl.nn.module import Module
from daskdl.nn.parameter import Parameter
from daskdl.tensor import Tensor

__all__ = ["PReLU", "RReLU", "SReLU"]


class PReLU(Module):
    """x where positive, a learned slope times x elsewhere (K. He et al., arXiv 1502.01852).

    Parameters
    ----------
    channels : int
        Slopes; 1 for one that all channels share.
    slope : float
        At the start.

    Examples
    --------
    >>> nn.PReLU(4)(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 6, 5, 4)
    """

    def __init__(self, channels: int = 1, slope: float = 0.25) -> None:
        self.channels = channels
        self.slope = Parameter(filled(channels, slope))

    def forward(self, x: Any) -> Tensor:
        """Map x (..., C) to the same shape."""
        if self.channels != 1:
            check_last_axis(self, x, None, self.channels)
        return ops.prelu(x, self.slope)


class RReLU(Module):
    """x where positive, elsewhere x times a slope drawn for each element; its mean in inference.

    B. Xu et al., arXiv 1505.00853.

    Parameters
    ----------
    low, high : float
        What the slopes are drawn between.

    Examples
    --------
    >>> nn.RReLU()(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 4)
    """

    def __init__(self, low: float = 1 / 8, high: float = 1 / 3) -> None:
        if not low <= high:
            raise SettingsError(
                f"RReLU: expected low <= high, found {low} and {high}; change the two about"
            )
        self.low, self.high = low, high

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        if not self.training:
            return ops.leaky_relu(x, slope=(self.low + self.high) / 2)
        slopes = generator_of_draw().uniform(self.low, self.high, x.shape).astype(x.dtype)
        y: Tensor = ops.multiply(x, np.where(np.asarray(x) >= 0, x.dtype.type(1), slopes))
        return y


class SReLU(Module):
    """Three straight pieces with learned joints and slopes (X. Jin et al., arXiv 1512.07030).

    ``right + slope_right * (x - right)`` above ``right``, ``left + slope_left * (x - left)`` below
    ``left``, x in between; each (C,), the joints 0 and 1 at the start and the slopes 0.2 and 1.

    Examples
    --------
    >>> nn.SReLU(4)(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 6, 5, 4)
    """

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self.left = Parameter(filled(channels, 0))
        self.slope_left = Parameter(filled(channels, 0.2))
        self.right = Parameter(filled(channels, 1))
        self.slope_right = Parameter(filled(channels, 1))

    def forward(self, x: Any) -> Tensor:
        """Map x (..., C) to the same shape."""
        check_last_axis(self, x, None, self.channels)
        values = np.asarray(x)
        above = self.right + self.slope_right * ops.subtract(x, self.right)
        below = self.left + self.slope_left * ops.subtract(x, self.left)
        inner = ops.where(values > self.left.data, x, below)
        y: Tensor = ops.where(values >= self.right.data, above, inner)
        return y
