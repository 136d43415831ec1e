"""The affine layer."""

from __future__ import annotations

from typing import Any

from daskdl.nn.arguments import check_last_axis
from daskdl.nn.initialise import generator, uniform
from daskdl.nn.module import Module
from daskdl.ops.linear import linear
from daskdl.tensor import Tensor

__all__ = ["Linear"]


class Linear(Module):
    """y = x @ weight.T + bias over the last axis, (..., in) -> (..., out).

    Parameters
    ----------
    in_features, out_features : int
    bias : bool
    seed : int, optional
        Of the initial weights.

    Examples
    --------
    >>> nn.Linear(4, 3, seed=0)(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 3)
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
