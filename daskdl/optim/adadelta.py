"""Adadelta: steps scaled by the ratio of former steps to gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daskdl.kernels.optim import adagrad as squares
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.method import at_least_zero, below_one
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class Adadelta(Elementwise):
    """w -= rate * x, x = g * sqrt(mean square of former x) / sqrt(mean square of g).

    M. Zeiler, arXiv 1212.5701.

    Parameters
    ----------
    learning_rate : float or Schedule
        1 in the paper.
    smoothing : float
        Decay of both mean squares, 0 <= smoothing < 1.
    epsilon : float
        Added to both below the root; without it nothing ever moves.
    weight_decay : float

    Examples
    --------
    >>> method = Adadelta()
    >>> weights, gradient = np.array([1.0, 2.0], np.float32), np.array([0.5, -1.0], np.float32)
    >>> after, state = method.update(weights, gradient, method.init(2), 0)
    >>> after.round(4)
    array([0.9968, 2.0032], dtype=float32)
    """

    learning_rate: float | Schedule = 1.0
    smoothing: float = 0.9
    epsilon: float = 1e-6
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "smoothing")
        at_least_zero(self, "epsilon", "weight_decay")

    def kernel(self) -> Any:
        """Return the kernel."""
        return squares.adadelta

    def starts(self) -> dict[str, float | None]:
        """Return the mean squares of the gradients and of the steps, zeros."""
        return {"square": 0.0, "step": 0.0}

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        return decay, rate, self.smoothing, 1 - self.smoothing, self.epsilon
