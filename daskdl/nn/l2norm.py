"""Vectors of channels brought to one length, and the learned scale behind it."""

from __future__ import annotations

from typing import Any

from daskdl.nn.arguments import check_last_axis
from daskdl.nn.initialise import filled
from daskdl.nn.module import Module
from daskdl.nn.parameter import Parameter
from daskdl.ops.l2norm import normalize
from daskdl.tensor import Tensor

__all__ = ["Normalize"]


class Normalize(Module):
    """Divide each vector along the last axis by its Euclidean length, then scale each channel.

    With ``scale=20`` it is the layer that SSD puts behind its first feature map (W. Liu et al.,
    ParseNet, arXiv 1506.04579).

    Parameters
    ----------
    channels : int, optional
        Of the learned scale; without it nothing is scaled and any number of channels will do.
    scale : float
        At the start.
    eps : float
        The least that is divided by.

    Examples
    --------
    >>> nn.Normalize(4, scale=20)(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 6, 5, 4)
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
