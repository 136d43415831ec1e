"""Positions added to sequences, as waves of many lengths."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.kernels.vectors import functions
from daskdl.nn.arguments import check_last_axis
from daskdl.nn.module import Module
from daskdl.ops.arithmetic import add
from daskdl.tensor import Array, Tensor

__all__ = ["PositionalEncoding"]


class PositionalEncoding(Module):
    """Add sines and cosines of a step's position, (N, T, C) -> the same shape.

    Channels 2 i and 2 i + 1 get sine and cosine of ``t / longest ** (2 i / C)`` (A. Vaswani et al.,
    arXiv 1706.03762, section 3.5).

    Parameters
    ----------
    features : int
    longest : float
        The longest wave, in units of 2 pi steps.

    Examples
    --------
    >>> nn.PositionalEncoding(4)(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 4)
    """

    def __init__(self, features: int, longest: float = 10000.0) -> None:
        if longest <= 1:
            raise SettingsError(
                f"PositionalEncoding.longest: expected above 1, found {longest}"
                "; give a wavelength in steps, such as 10000"
            )
        self.features, self.longest = features, longest

    def forward(self, x: Any) -> Tensor:
        """Map x (N, T, C) to the same shape."""
        check_last_axis(self, x, 3, self.features)
        y: Tensor = add(x, waves(x.shape[1], self.features, self.longest).astype(x.dtype))
        return y


@lru_cache(maxsize=16)
def waves(steps: int, features: int, longest: float) -> Array:
    """Return the encoding of ``steps`` positions, float64 (steps, features)."""
    rates = functions.power(float(longest), -(np.arange(0, features, 2) / features))
    angles = np.arange(steps)[:, None] * rates
    table = np.empty((steps, features))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)[:, : features // 2]
    table.flags.writeable = False
    return table
