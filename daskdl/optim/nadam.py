"""Nadam: Adam with Nesterov's momentum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.kernels.optim import adam as moments
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.method import at_least_zero, below_one
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class Nadam(Elementwise):
    """Adam that steps along the mean of the gradients and the gradient itself.

    T. Dozat, Incorporating Nesterov Momentum into Adam, ICLR workshop (2016). The momentum of
    iteration t, counted from 1, is ``beta1 * (1 - 0.96 ** (t * momentum_decay) / 2)``.

    Parameters
    ----------
    learning_rate : float or Schedule
    beta1, beta2 : float
        Decay of the first and second moment.
    epsilon : float
    weight_decay : float
    momentum_decay : float
    decoupled : bool
        The weight decay stays out of the moments, as in :class:`AdamW`.

    Examples
    --------
    >>> method = Nadam()
    >>> weights, gradient = np.array([1.0, 2.0], np.float32), np.array([0.5, -1.0], np.float32)
    >>> after, state = method.update(weights, gradient, method.init(2), 0)
    >>> after.round(4)
    array([0.9979, 2.0021], dtype=float32)
    """

    learning_rate: float | Schedule = 2e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    momentum_decay: float = 4e-3
    decoupled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "beta1", "beta2")
        at_least_zero(self, "epsilon", "weight_decay", "momentum_decay")

    def kernel(self) -> Any:
        """Return the kernel, Adam's."""
        return moments.adam

    def starts(self) -> dict[str, float | None]:
        """Return both moments, zeros."""
        return {"mean": 0.0, "square": 0.0}

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        t = iteration + 1
        correction = math.sqrt(1 - self.beta2**t)
        now, then = self._momentum(t), self._momentum(t + 1)
        product = self._product(t)
        return (
            0.0 if self.decoupled else decay,
            self.beta1,
            1 - self.beta1,
            self.beta2,
            1 - self.beta2,
            rate * then / (1 - product * then) * correction,
            self.epsilon * correction,
            1 - rate * decay if self.decoupled else 1.0,
            rate * (1 - now) / (1 - product) * correction,
        )

    def _momentum(self, t: Any) -> Any:
        return self.beta1 * (1 - 0.5 * 0.96 ** (t * self.momentum_decay))

    def _product(self, t: int) -> float:
        """Return the product of the momenta of iterations 1 to t."""
        # Each is below beta1: after so many nothing is left that 1 less the product would show.
        enough = 1 + int(-40 / math.log(self.beta1)) if self.beta1 else 1
        return float(np.prod(self._momentum(np.arange(1, min(t, enough) + 1))))
