"""Penalties: layers that hand activations on and pull at them on the way back."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.nn.module import Module
from daskdl.tensor import Array, Tensor, op

__all__ = ["ActivityRegularization", "NegativeEntropyPenalty"]


class ActivityRegularization(Module):
    """Hand the input on; train as if its magnitude times l1 and its square times l2 were a loss.

    That is ``sum(l1 * abs(x) + l2 * x**2) / N`` over a batch of N samples, a mean over samples as
    all losses are. The loss that is shown is without it.

    Parameters
    ----------
    l1, l2 : float
        Not negative.

    Examples
    --------
    >>> nn.ActivityRegularization()(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 4)
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        if not (l1 >= 0 and l2 >= 0):
            raise SettingsError(
                f"ActivityRegularization: expected l1 >= 0 and l2 >= 0, found {l1} and {l2}"
            )
        self.l1, self.l2 = l1, l2

    def forward(self, x: Any) -> Tensor:
        """Return x (N, ...) as it is."""
        y: Tensor = _activity(x, l1=self.l1, l2=self.l2)
        return y


class NegativeEntropyPenalty(Module):
    """Hand probabilities on; train as if their negative entropy times ``beta`` were a loss.

    That is ``beta * sum(p * log(p)) / N``, which keeps them from becoming certain too early, as a
    policy should not (R. J. Williams and J. Peng, Connection Science 3, 1991).

    Parameters
    ----------
    beta : float

    Examples
    --------
    >>> nn.NegativeEntropyPenalty()(np.ones((2, 6, 4), np.float32)).shape
    (2, 6, 4)
    """

    def __init__(self, beta: float = 0.01) -> None:
        self.beta = beta

    def forward(self, p: Any) -> Tensor:
        """Return p (N, ...), positive, as it is."""
        y: Tensor = _negative_entropy(p, beta=self.beta)
        return y


@op
def _activity(x: Array, *, l1: float, l2: float) -> Any:
    def backward(dy: Array) -> Any:
        return (dy + (l1 * np.sign(x) + 2 * l2 * x) / len(x),)

    return x, backward


@op
def _negative_entropy(p: Array, *, beta: float) -> Any:
    def backward(dy: Array) -> Any:
        return (dy + beta * (np.log(p) + 1) / len(p),)

    return p, backward
