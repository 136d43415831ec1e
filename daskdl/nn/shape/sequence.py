"""Layers over the steps of a sequence, and reductions of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.module import Module
from daskdl.nn.core.operation import _OfOperation
from daskdl.tensor import Tensor

__all__ = [
    "Bidirectional",
    "Masking",
    "Max",
    "Mean",
    "Min",
    "RecurrentDecoder",
    "Sum",
    "TimeDistributed",
]


class TimeDistributed(Module, pure=True):
    """Apply a layer to each step by itself, (N, T, ...) -> (N, T, ...)."""

    def __init__(self, layer: Module) -> None:
        self.layer = layer

    def forward(self, x: Any) -> Tensor:
        """Apply the layer to all steps at once, as to samples."""
        if len(x.shape) < 3:
            raise ShapeError(
                f"TimeDistributed: expected an input of shape (N, T, ...), found {tuple(x.shape)}"
                "; add an axis of steps, x[:, None]"
            )
        n, steps, *rest = x.shape
        y = self.layer(ops.reshape(x, shape=(n * steps, *rest)))
        return ops.reshape(y, shape=(n, steps, *y.shape[1:]))


class Bidirectional(Module, pure=True):
    """Runs one recurrent layer forward and another backward, and merges their outputs at each step.

    Parameters
    ----------
    ahead, back : Module
        RNN, LSTM or GRU.
    merge : "concatenate", "sum", "mean" or "multiply"
    """

    def __init__(self, ahead: Module, back: Module, merge: str = "concatenate") -> None:
        if merge not in ("concatenate", "sum", "mean", "multiply"):
            raise SettingsError(
                f"Bidirectional.merge: expected concatenate, sum, mean or multiply, found {merge!r}"
            )
        self.ahead, self.back, self.merge = ahead, back, merge

    def forward(self, x: Any, lengths: ArrayLike | None = None) -> Tensor:
        """Map x (N, T, in) to (N, T, C), or to (N, T, 2 C) if outputs are concatenated."""
        first = _outputs(self.ahead(x, lengths=lengths))
        second = _outputs(self.back(x, lengths=lengths, reverse=True))
        y: Tensor
        if self.merge == "concatenate":
            y = ops.concatenate(first, second)
        elif self.merge == "multiply":
            y = first * second
        else:
            y = (first + second) * (0.5 if self.merge == "mean" else 1.0)
        return y


class RecurrentDecoder(Module, pure=True):
    """Unrolls a recurrent layer; each step's output is the next step's input.

    Parameters
    ----------
    layer : Module
        RNN, LSTM or GRU that returns both outputs and states.
    steps : int
    head : Module, optional
        Maps the layer's output to the step's output, which is the next input; needed if the numbers
        of channels differ.
    """

    def __init__(self, layer: Module, steps: int, head: Module | None = None) -> None:
        if steps < 1:
            raise SettingsError(
                f"RecurrentDecoder.steps: expected at least 1, found {steps}; say how many to make"
            )
        self.layer, self.steps, self.head = layer, steps, head

    def forward(self, x: Any, state: Any = None) -> Tensor:
        """Map the first input x (N, in), and the state to start from, to (N, steps, in)."""
        if len(x.shape) != 2:
            raise ShapeError(
                f"RecurrentDecoder: expected a first input of shape (N, in), found {tuple(x.shape)}"
            )
        outputs = []
        for _ in range(self.steps):
            y, state = self.layer(ops.reshape(x, shape=(x.shape[0], 1, x.shape[1])), state)
            x = ops.reshape(y, shape=(y.shape[0], y.shape[2]))
            x = x if self.head is None else self.head(x)
            outputs.append(x)
        return ops.stack(*outputs, axis=1)


class Masking(Module):
    """Sets steps whose numbers are all ``value`` to zero, (N, T, C) -> the same shape."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def forward(self, x: Any) -> Tensor:
        """Map any shape (..., C) to the same shape."""
        mask = (np.asarray(x) != self.value).any(-1, keepdims=True)
        return ops.multiply(x, mask.astype(x.dtype))


def _outputs(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


class Sum(_OfOperation, operation=ops.sum):
    """The sum over axes, which are removed unless ``keepdims``."""

    def __init__(self, axis: int | Sequence[int] = -1, keepdims: bool = False) -> None:
        self.axis = axis if isinstance(axis, int) else tuple(axis)
        self.keepdims = keepdims


class Mean(Sum, operation=ops.mean):
    """The mean over axes, which are removed unless ``keepdims``."""


class Max(_OfOperation, operation=ops.amax):
    """The largest number along an axis, which is removed unless ``keepdims``."""

    axis: int = -1
    keepdims: bool = False


class Min(Max, operation=ops.amin):
    """The smallest number along an axis, which is removed unless ``keepdims``."""
