"""The layer normalisation layer."""

from __future__ import annotations

import math
from typing import Any

from daskdl.errors import ShapeError
from daskdl.nn.arguments import Sizes, sizes
from daskdl.nn.initialise import filled
from daskdl.nn.module import Module
from daskdl.nn.parameter import Parameter
from daskdl.ops.layernorm import layer_norm
from daskdl.tensor import Tensor

__all__ = ["LayerNorm"]


class LayerNorm(Module):
    """Normalise each sample over its last axes, then scale and shift (arXiv 1607.06450).

    Parameters
    ----------
    shape : int or sequence of int
        Of the axes that are normalised together; a number for the channels alone.
    eps : float
        Is added to the variance.
    affine : bool
        Whether to scale and shift by parameters.

    Examples
    --------
    >>> nn.LayerNorm((5, 4))(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 6, 5, 4)
    """

    def __init__(self, shape: Sizes, eps: float = 1e-5, affine: bool = True) -> None:
        given = (shape,) if isinstance(shape, int) else shape
        self.shape, self.eps = sizes("LayerNorm.shape", given, len(given)), eps
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
        y: Tensor = layer_norm(x, self.weight, self.bias, axes=len(self.shape), eps=self.eps)
        return y
