"""Adam, AdamW, Adamax and Nadam: steps scaled by running moments of the gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.kernels.optim import updates
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.method import at_least_zero, below_one
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class _Moments(Elementwise):
    """Settings of methods with moments of the gradient, and their bounds."""

    learning_rate: float | Schedule = 2e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "beta1", "beta2")
        at_least_zero(self, "epsilon", "weight_decay")


@dataclass(frozen=True)
class Adam(_Moments):
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
    >>> weights, gradient = np.float32([1, 2]), np.float32([0.5, -1])
    >>> method.update(weights, gradient, method.init(2), 0)[0].round(4)
    array([0.999, 2.001], dtype=float32)
    """

    learning_rate: float | Schedule = 1e-3
    amsgrad: bool = False

    def kernel(self) -> Any:
        """Return the kernel."""
        return updates.amsgrad if self.amsgrad else updates.adam

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


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam; besides its step, weights shrink by ``rate * weight_decay`` of themselves.

    I. Loshchilov and F. Hutter, arXiv 1711.05101. Parameters as :class:`Adam` has them.

    Examples
    --------
    >>> method = AdamW()
    >>> weights, gradient = np.float32([1, 2]), np.float32([0.5, -1])
    >>> method.update(weights, gradient, method.init(2), 0)[0].round(4)
    array([0.999, 2.001], dtype=float32)
    """

    weight_decay: float = 0.01

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        return self.corrected(iteration, rate, 0.0, 1 - rate * decay)


@dataclass(frozen=True)
class Adamax(_Moments):
    """w -= rate * m / (u * (1 - beta1 ** t)), u = max(beta2 * u, abs(g) + epsilon).

    D. Kingma and J. Ba, arXiv 1412.6980, section 7.1.

    Parameters
    ----------
    learning_rate : float or Schedule
    beta1, beta2 : float
        Decay of the mean and of the maximum.
    epsilon : float
        Above 0; else a weight whose gradient was always 0 becomes NaN.
    weight_decay : float

    Examples
    --------
    >>> method = Adamax()
    >>> weights, gradient = np.float32([1, 2]), np.float32([0.5, -1])
    >>> method.update(weights, gradient, method.init(2), 0)[0].round(4)
    array([0.998, 2.002], dtype=float32)
    """

    def kernel(self) -> Any:
        """Return the kernel."""
        return updates.adamax

    def starts(self) -> dict[str, float | None]:
        """Return the mean and the maximum, zeros."""
        return {"mean": 0.0, "largest": 0.0}

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        rate /= 1 - self.beta1 ** (iteration + 1)
        return decay, self.beta1, 1 - self.beta1, self.beta2, rate, self.epsilon


@dataclass(frozen=True)
class Nadam(_Moments):
    """Adam with Nesterov momentum: it steps along the mean of the gradients and the gradient.

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
    >>> weights, gradient = np.float32([1, 2]), np.float32([0.5, -1])
    >>> method.update(weights, gradient, method.init(2), 0)[0].round(4)
    array([0.9979, 2.0021], dtype=float32)
    """

    momentum_decay: float = 4e-3
    decoupled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_zero(self, "momentum_decay")

    def kernel(self) -> Any:
        """Return the kernel, Adam's."""
        return updates.adam

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
