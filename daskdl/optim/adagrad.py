"""Adagrad: steps scaled by the root of all squared gradients so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daskdl.kernels.optim import adagrad as squares
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.method import State, at_least_zero
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class Adagrad(Elementwise):
    """w -= rate * g / (sqrt(s) + epsilon), s += g * g, g with ``weight_decay * w`` added.

    J. Duchi, E. Hazan and Y. Singer, Adaptive Subgradient Methods, JMLR 12 (2011).

    Parameters
    ----------
    learning_rate : float or Schedule
    rate_decay : float
        In iteration t, counted from 0, the rate is divided by ``1 + t * rate_decay``.
    weight_decay : float
    initial : float
        What the sums of squares begin with.
    epsilon : float

    Examples
    --------
    >>> method = Adagrad()
    >>> weights, gradient = np.array([1.0, 2.0], np.float32), np.array([0.5, -1.0], np.float32)
    >>> after, state = method.update(weights, gradient, method.init(2), 0)
    >>> after.round(4)
    array([0.99, 2.01], dtype=float32)
    """

    learning_rate: float | Schedule = 0.01
    rate_decay: float = 0.0
    weight_decay: float = 0.0
    initial: float = 0.0
    epsilon: float = 1e-10

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_zero(self, "rate_decay", "weight_decay", "initial", "epsilon")

    def rate_at(self, iteration: int, state: State | None = None) -> float:
        """Return the learning rate of an iteration."""
        return super().rate_at(iteration, state) / (1 + iteration * self.rate_decay)

    def kernel(self) -> Any:
        """Return the kernel."""
        return squares.adagrad

    def starts(self) -> dict[str, float | None]:
        """Return the first value of the sums of squares."""
        return {"square": self.initial}

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        return decay, rate, self.epsilon
