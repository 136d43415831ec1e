"""Layers with a choice: the largest of several maps, or a gate between a map and the input."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.nn.activations import Tanh
from daskdl.nn.arguments import check_last_axis
from daskdl.nn.linear import Linear
from daskdl.nn.module import Module
from daskdl.tensor import Tensor

__all__ = ["Highway", "Maxout"]


class Maxout(Module):
    """The largest of ``pieces`` affine maps, (..., in) -> (..., out).

    I. Goodfellow et al., arXiv 1302.4389.

    Examples
    --------
    >>> nn.Maxout(4, 3, 2, seed=0)(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 3)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        pieces: int,
        bias: bool = True,
        seed: int | None = None,
    ) -> None:
        self.pieces, self.in_features, self.out_features = pieces, in_features, out_features
        self.linear = Linear(in_features, pieces * out_features, bias, seed)

    def forward(self, x: Any) -> Tensor:
        """Map x (..., in) to (..., out)."""
        check_last_axis(self, x, None, self.in_features)
        pieces = ops.reshape(self.linear(x), shape=(*x.shape[:-1], self.pieces, self.out_features))
        y: Tensor = ops.amax(pieces, axis=-2)
        return y


class Highway(Module):
    """gate * activation(linear(x)) + (1 - gate) * x, (..., C) -> (..., C).

    R. Srivastava et al., arXiv 1505.00387. The gates start nearly closed, at a bias of -2.

    Parameters
    ----------
    features : int
    activation : Module, optional
        Tanh without.
    bias : bool
    seed : int, optional

    Examples
    --------
    >>> nn.Highway(4, nn.ReLU(), seed=0)(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 4)
    """

    def __init__(
        self,
        features: int,
        activation: Module | None = None,
        bias: bool = True,
        seed: int | None = None,
    ) -> None:
        self.features = features
        self.linear = Linear(features, features, bias, seed)
        self.gate = Linear(features, features, bias, None if seed is None else seed + 1)
        if self.gate.bias is not None:
            self.gate.bias.data[:] = -2
        self.activation = Tanh() if activation is None else activation

    def forward(self, x: Any) -> Tensor:
        """Map x (..., C) to the same shape."""
        check_last_axis(self, x, None, self.features)
        gate = ops.sigmoid(self.gate(x))
        y: Tensor = gate * ops.subtract(self.activation(self.linear(x)), x) + x
        return y
