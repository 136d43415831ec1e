"""Affine and bilinear maps, and distances to learned centres."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.nn.core.arguments import check_last_axis
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import generator, uniform
from daskdl.ops.linear import linear
from daskdl.tensor import Tensor

__all__ = [
    "Bilinear",
    "Cosine",
    "Euclidean",
    "Linear",
]


class Linear(Module, pure=True):
    """y = x @ weight.T + bias over the last axis, (..., in) -> (..., out).

    Parameters
    ----------
    in_features, out_features : int
    bias : bool
    seed : int, optional
        Seed of the initial weights.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, seed: int | None = None
    ) -> None:
        rng = generator(seed)
        self.in_features, self.out_features = in_features, out_features
        self.weight = uniform(rng, (out_features, in_features), in_features)
        self.bias = uniform(rng, (out_features,), in_features) if bias else None

    def forward(self, x: Any) -> Tensor:
        """Map x (..., in) to (..., out)."""
        check_last_axis(self, x, None, self.in_features)
        return linear(x, self.weight, self.bias)


class Bilinear(Module, pure=True):
    """y[o] = x1 @ weight[o] @ x2 + bias[o], (N, in1) and (N, in2) -> (N, out).

    Parameters
    ----------
    in1_features, in2_features, out_features : int
    bias : bool
    seed : int, optional
        Seed of the initial weights.
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        seed: int | None = None,
    ) -> None:
        rng = generator(seed)
        self.in1_features, self.in2_features = in1_features, in2_features
        self.weight = uniform(rng, (out_features, in1_features, in2_features), in1_features)
        self.bias = uniform(rng, (out_features,), in1_features) if bias else None

    def forward(self, first: Any, second: Any = None) -> Tensor:
        """Map two inputs, or a pair of them, to (N, out)."""
        if second is None:
            first, second = first
        out, n = len(self.weight), first.shape[0]
        expected = (n, self.in1_features), (n, self.in2_features)
        if (tuple(first.shape), tuple(second.shape)) != expected:
            raise ShapeError(
                f"Bilinear: expected inputs of shapes (N, {self.in1_features}) and (N, "
                f"{self.in2_features}), found {tuple(first.shape)} and {tuple(second.shape)}"
            )
        weight = ops.transpose(self.weight, axes=(1, 0, 2))
        weight = ops.reshape(weight, shape=(self.in1_features, out * self.in2_features))
        matrices = ops.reshape(ops.matmul(first, weight), shape=(n, out, self.in2_features))
        y: Tensor = ops.sum(
            matrices * ops.reshape(second, shape=(n, 1, self.in2_features)), axis=-1
        )
        return y if self.bias is None else y + self.bias


class Euclidean(Module, pure=True):
    """The distance to each of ``out_features`` learned centres, (..., in) -> (..., out).

    Parameters
    ----------
    in_features, out_features : int
    eps : float
        Added to the squared distance, so that the slope at a centre is finite.
    seed : int, optional
        Seed of the centres.
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


class Cosine(Module, pure=True):
    """The cosine of the angle to each of ``out_features`` learned vectors, (..., in) -> (..., out).

    Parameters
    ----------
    in_features, out_features : int
    eps : float
        Least length in a division.
    seed : int, optional
        Seed of the vectors.
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
        return ops.linear(ops.normalize(x, eps=self.eps), directions, None)
