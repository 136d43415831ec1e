"""Layers that compare their input with learned vectors."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.nn.arguments import check_last_axis
from daskdl.nn.initialise import generator, uniform
from daskdl.nn.module import Module
from daskdl.tensor import Tensor

__all__ = ["Cosine", "Euclidean"]


class Euclidean(Module):
    """The distance to each of ``out_features`` learned centres, (..., in) -> (..., out).

    Parameters
    ----------
    in_features, out_features : int
    eps : float
        Is added to the squared distance, so that the slope at a centre is finite.
    seed : int, optional
        Of the centres.

    Examples
    --------
    >>> nn.Euclidean(4, 3, seed=0)(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 3)
    """

    def __init__(
        self, in_features: int, out_features: int, eps: float = 1e-12, seed: int | None = None
    ) -> None:
        self.in_features, self.eps = in_features, eps
        self.weight = uniform(generator(seed), (out_features, in_features), in_features)

    def forward(self, x: Any) -> Tensor:
        """Map x (..., in) to (..., out)."""
        check_last_axis(self, x, None, self.in_features)
        points = ops.reshape(x, shape=(*x.shape[:-1], 1, self.in_features))
        squares = ops.sum(ops.square(points - self.weight), axis=-1)
        return ops.sqrt(squares + self.eps)


class Cosine(Module):
    """The cosine of the angle to each of ``out_features`` learned vectors, (..., in) -> (..., out).

    Parameters
    ----------
    in_features, out_features : int
    eps : float
        The least length that is divided by.
    seed : int, optional
        Of the vectors.

    Examples
    --------
    >>> nn.Cosine(4, 3, seed=0)(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 3)
    """

    def __init__(
        self, in_features: int, out_features: int, eps: float = 1e-12, seed: int | None = None
    ) -> None:
        self.in_features, self.eps = in_features, eps
        self.weight = uniform(generator(seed), (out_features, in_features), in_features)

    def forward(self, x: Any) -> Tensor:
        """Map x (..., in) to (..., out)."""
        check_last_axis(self, x, None, self.in_features)
        directions = ops.normalize(self.weight, eps=self.eps)
        y: Tensor = ops.linear(ops.normalize(x, eps=self.eps), directions, None)
        return y
