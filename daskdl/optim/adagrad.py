"""Adagrad: steps scaled by the root of all squared gradients so far."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from daskdl.kernels.moments import adagrad_step
from daskdl.optim.method import State, Vector, in_range


@dataclass(frozen=True)
class Adagrad:
    """w -= rate * g / (sqrt(s) + epsilon), s += g * g, g with ``weight_decay * w`` added.

    J. Duchi, E. Hazan and Y. Singer, Adaptive Subgradient Methods, JMLR 12 (2011).

    Parameters
    ----------
    rate : float
        Learning rate.
    rate_decay : float
        In iteration t, counted from 0, the rate is ``rate / (1 + t * rate_decay)``.
    weight_decay : float
    initial : float
        What the sums of squares begin with.
    epsilon : float
    """

    rate: float = 0.01
    rate_decay: float = 0.0
    weight_decay: float = 0.0
    initial: float = 0.0
    epsilon: float = 1e-10

    def __post_init__(self) -> None:
        for name in ("rate", "rate_decay", "weight_decay", "initial", "epsilon"):
            in_range(self, name, getattr(self, name), 0, inf)

    def rate_at(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        return self.rate / (1 + iteration * self.rate_decay)

    def init(self, size: int) -> State:
        """Return the sums of squares (size,)."""
        return {"square": np.full(size, self.initial, np.float32)}

    def update(
        self, weights: Vector, gradient: Vector, state: State, iteration: int
    ) -> tuple[Vector, State]:
        """Return new weights and state."""
        factors = np.array([self.rate_at(iteration), self.weight_decay, self.epsilon], np.float32)
        new, square = adagrad_step(weights, gradient, state["square"], factors)
        return new, {"square": square}
