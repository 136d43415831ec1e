"""Adam, and AdamW by its decoupled weight decay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import inf

import numpy as np

from daskdl.errors import SettingsError
from daskdl.kernels.moments import adam_step
from daskdl.kernels.reduce import sum_of_squares
from daskdl.optim.method import State, Vector, in_range


@dataclass(frozen=True)
class Adam:
    """Steps scaled by running moments of the gradient.

    D. Kingma and J. Ba, arXiv 1412.6980; decoupled decay: I. Loshchilov and F. Hutter, 1711.05101.

    Parameters
    ----------
    rate : float
        Learning rate.
    beta1, beta2 : float
        Decay of the first and second moment.
    epsilon : float
    weight_decay : float
        Decoupled (AdamW): the weights shrink by ``rate * weight_decay`` in each step.
    clip_norm : float, optional
        The gradient is scaled down to this Euclidean norm where it is longer.
    warmup : int
        Iterations over which the rate rises linearly from 0.
    decay_over : int, optional
        The rate falls from its full value at the end of the warm-up to 5 % of it at this iteration,
        along half a cosine, and stays there.
    """

    rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    clip_norm: float | None = None
    warmup: int = 0
    decay_over: int | None = None

    def __post_init__(self) -> None:
        in_range(self, "rate", self.rate, 0, inf)
        in_range(self, "beta1", self.beta1, 0, 1)
        in_range(self, "beta2", self.beta2, 0, 1)
        in_range(self, "epsilon", self.epsilon, 0, inf)
        in_range(self, "weight_decay", self.weight_decay, 0, inf)
        in_range(self, "warmup", self.warmup, 0, inf)
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise SettingsError(f"Adam: expected clip_norm > 0 or None, found {self.clip_norm!r}")
        if self.decay_over is not None and self.decay_over < self.warmup:
            raise SettingsError(
                f"Adam: expected {self.warmup} <= decay_over, since the rate falls after its "
                f"warm-up, found {self.decay_over!r}"
            )

    def rate_at(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        if iteration < self.warmup:
            return self.rate * (iteration + 1) / self.warmup
        if self.decay_over is None:
            return self.rate
        part = (iteration - self.warmup) / max(1, self.decay_over - self.warmup)
        return self.rate * (0.05 + 0.475 * (1 + float(np.cos(np.pi * min(1.0, part)))))

    def init(self, size: int) -> State:
        """Return both moments, zeros (size,)."""
        return {"mean": np.zeros(size, np.float32), "square": np.zeros(size, np.float32)}

    def update(
        self, weights: Vector, gradient: Vector, state: State, iteration: int
    ) -> tuple[Vector, State]:
        """Return new weights and state."""
        t, rate, scale = iteration + 1, self.rate_at(iteration), 1.0
        if self.clip_norm is not None:
            norm = math.sqrt(sum_of_squares(gradient))
            scale = min(1.0, self.clip_norm / max(norm, 1e-30))
        correction = np.sqrt(1 - self.beta2**t)
        factors = np.array(
            [
                self.beta1,
                1 - self.beta1,
                self.beta2,
                1 - self.beta2,  # in float64: float32(0.999) is 1e-5 of this away
                rate * correction / (1 - self.beta1**t),
                self.epsilon * correction,
                1 - rate * self.weight_decay,
                scale,
            ],
            np.float32,
        )
        new, mean, square = adam_step(weights, gradient, state["mean"], state["square"], factors)
        return new, {"mean": mean, "square": square}
