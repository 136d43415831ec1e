"""RMSprop: steps scaled by the root of a running mean of squared gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daskdl.kernels.optim import adagrad as squares
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.method import at_least_zero, below_one
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class RMSprop(Elementwise):
    """w -= rate * v, v = momentum * v + g / (sqrt(s) + epsilon), s the mean square of g.

    T. Tieleman and G. Hinton, Neural Networks for Machine Learning, lecture 6.5 (2012); centred: A.
    Graves, arXiv 1308.0850.

    Parameters
    ----------
    learning_rate : float or Schedule
    smoothing : float
        Decay of the mean square, 0 <= smoothing < 1.
    epsilon : float
    weight_decay : float
    momentum : float
    centered : bool
        Scale by the gradient's standard deviation: the square of its mean is taken off.

    Examples
    --------
    >>> method = RMSprop()
    >>> weights, gradient = np.array([1.0, 2.0], np.float32), np.array([0.5, -1.0], np.float32)
    >>> after, state = method.update(weights, gradient, method.init(2), 0)
    >>> after.round(4)
    array([0.9, 2.1], dtype=float32)
    """

    learning_rate: float | Schedule = 0.01
    smoothing: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    centered: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "smoothing", "momentum")
        at_least_zero(self, "epsilon", "weight_decay")

    def kernel(self) -> Any:
        """Return the kernel."""
        return squares.rmsprop

    def starts(self) -> dict[str, float | None]:
        """Return the mean square, and the mean and the velocity where they are wanted."""
        mean, velocity = (0.0 if used else None for used in (self.centered, self.momentum))
        return {"square": 0.0, "mean": mean, "velocity": velocity}

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        return decay, rate, self.smoothing, 1 - self.smoothing, self.epsilon, self.momentum
