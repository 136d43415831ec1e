"""Adamax: Adam with the largest gradient in place of their mean square."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daskdl.kernels.optim import adam as moments
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.method import at_least_zero, below_one
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class Adamax(Elementwise):
    """w -= rate * m / (u * (1 - beta1 ** t)), u = max(beta2 * u, abs(g) + epsilon).

    D. Kingma and J. Ba, arXiv 1412.6980, section 7.1.

    Parameters
    ----------
    learning_rate : float or Schedule
    beta1, beta2 : float
        Decay of the mean and of the largest.
    epsilon : float
        Above 0, or a weight whose gradient was never another than 0 becomes not a number.
    weight_decay : float

    Examples
    --------
    >>> method = Adamax()
    >>> weights, gradient = np.array([1.0, 2.0], np.float32), np.array([0.5, -1.0], np.float32)
    >>> after, state = method.update(weights, gradient, method.init(2), 0)
    >>> after.round(4)
    array([0.998, 2.002], dtype=float32)
    """

    learning_rate: float | Schedule = 2e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "beta1", "beta2")
        at_least_zero(self, "epsilon", "weight_decay")

    def kernel(self) -> Any:
        """Return the kernel."""
        return moments.adamax

    def starts(self) -> dict[str, float | None]:
        """Return the mean and the largest, zeros."""
        return {"mean": 0.0, "largest": 0.0}

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        rate /= 1 - self.beta1 ** (iteration + 1)
        return decay, self.beta1, 1 - self.beta1, self.beta2, rate, self.epsilon
