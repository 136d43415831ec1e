"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from daskdl.kernels.moments import momentum_step, sgd_step
from daskdl.optim.method import State, Vector, in_range


@dataclass(frozen=True)
class SGD:
    """w -= rate * v, v = momentum * v + g, g with ``weight_decay * w`` added.

    Parameters
    ----------
    rate : float
        Learning rate.
    momentum : float
        0 <= momentum < 1.
    nesterov : bool
        Step along ``g + momentum * v`` (I. Sutskever et al., 2013).
    weight_decay : float
    """

    rate: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        in_range(self, "rate", self.rate, 0, inf)
        in_range(self, "momentum", self.momentum, 0, 1)
        in_range(self, "weight_decay", self.weight_decay, 0, inf)

    def init(self, size: int) -> State:
        """Return the velocity, zeros (size,), or nothing without momentum."""
        return {"velocity": np.zeros(size, np.float32)} if self.momentum else {}

    def update(
        self, weights: Vector, gradient: Vector, state: State, iteration: int
    ) -> tuple[Vector, State]:
        """Return new weights and state."""
        factors = np.array([self.rate, self.weight_decay, self.momentum, self.nesterov], np.float32)
        if not self.momentum:
            return sgd_step(weights, gradient, factors), {}
        new, velocity = momentum_step(weights, gradient, state["velocity"], factors)
        return new, {"velocity": velocity}
