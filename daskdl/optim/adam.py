"""Adam: steps scaled by running moments of the gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from daskdl.kernels.optim import adam as moments
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.method import at_least_zero, below_one
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class Adam(Elementwise):
    """Steps scaled by running moments of the gradient.

    D. Kingma and J. Ba, arXiv 1412.6980; AMSGrad: S. Reddi et al., arXiv 1904.09237.

    Parameters
    ----------
    learning_rate : float or Schedule
    beta1, beta2 : float
        Decay of the first and second moment.
    epsilon : float
    weight_decay : float
        ``weight_decay * w`` is added to the gradient. :class:`AdamW` keeps it out of the moments.
    amsgrad : bool
        Scale by the largest second moment so far.

    Examples
    --------
    >>> method = Adam()
    >>> weights, gradient = np.array([1.0, 2.0], np.float32), np.array([0.5, -1.0], np.float32)
    >>> after, state = method.update(weights, gradient, method.init(2), 0)
    >>> after.round(4)
    array([0.999, 2.001], dtype=float32)
    """

    learning_rate: float | Schedule = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    amsgrad: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "beta1", "beta2")
        at_least_zero(self, "epsilon", "weight_decay")

    def kernel(self) -> Any:
        """Return the kernel."""
        return moments.amsgrad if self.amsgrad else moments.adam

    def starts(self) -> dict[str, float | None]:
        """Return both moments and the largest second one, zeros."""
        names = ("mean", "square", "largest") if self.amsgrad else ("mean", "square")
        return dict.fromkeys(names, 0.0)

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        return self.corrected(iteration, rate, decay, 1.0)

    def corrected(
        self, iteration: int, rate: float, decay: float, keep: float
    ) -> tuple[float, ...]:
        """Return the kernel's factors, with the bias of the moments corrected."""
        t = iteration + 1
        correction = math.sqrt(1 - self.beta2**t)
        return (
            decay,
            self.beta1,
            1 - self.beta1,
            self.beta2,
            1 - self.beta2,  # here and not in float32, whose 0.999 is 1e-5 of this away
            rate * correction / (1 - self.beta1**t),
            self.epsilon * correction,
            keep,
            0.0,
        )
