"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daskdl.errors import SettingsError
from daskdl.kernels.optim import updates
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.method import at_least_zero, below_one, in_range
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class SGD(Elementwise):
    """w -= rate * v, v = momentum * v + (1 - dampening) * g, g with ``weight_decay * w`` added.

    Parameters
    ----------
    learning_rate : float or Schedule
    momentum : float
        0 <= momentum < 1.
    nesterov : bool
        Step along ``g + momentum * v`` (I. Sutskever et al., ICML 2013).
    weight_decay : float
    dampening : float
        0 <= dampening < 1; the first gradient goes into v without it.

    Examples
    --------
    >>> method = SGD(0.1)
    >>> weights, gradient = np.float32([1, 2]), np.float32([0.5, -1])
    >>> method.update(weights, gradient, method.init(2), 0)[0].round(4)
    array([0.95, 2.1 ], dtype=float32)
    """

    learning_rate: float | Schedule = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    dampening: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "momentum")
        in_range(self, "dampening", self.dampening, 0, 1)
        at_least_zero(self, "weight_decay")
        if self.nesterov and (not self.momentum or self.dampening):
            raise SettingsError(
                "SGD: expected momentum > 0 and dampening = 0 with nesterov=True, found "
                f"momentum={self.momentum!r} and dampening={self.dampening!r}"
                "; leave nesterov out, or give a momentum"
            )

    def kernel(self) -> Any:
        """Return the kernel."""
        return updates.momentum if self.momentum else updates.sgd

    def starts(self) -> dict[str, float | None]:
        """Return the velocity, zero, or nothing without momentum."""
        return {"velocity": 0.0} if self.momentum else {}

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        share = 1 - self.dampening if iteration else 1.0
        along = (self.momentum, share, float(self.nesterov)) if self.momentum else ()
        return (decay, rate, *along)
