"""The bilinear layer."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.nn.initialise import generator, uniform
from daskdl.nn.module import Module
from daskdl.tensor import Tensor

__all__ = ["Bilinear"]


class Bilinear(Module):
    """y[o] = x1 @ weight[o] @ x2 + bias[o], (N, in1) and (N, in2) -> (N, out).

    Parameters
    ----------
    in1_features, in2_features, out_features : int
    bias : bool
    seed : int, optional
        Of the initial weights.

    Examples
    --------
    >>> layer = nn.Bilinear(3, 4, 5, seed=0)
    >>> layer(np.ones((2, 3), np.float32), np.ones((2, 4), np.float32)).shape
    (2, 5)
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
