"""Adagrad, Adadelta, RMSprop and Ftrl: steps scaled by squared gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daskdl.errors import SettingsError
from daskdl.kernels.optim import updates
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.method import State, at_least_zero, below_one
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
        First value of the sums of squares.
    epsilon : float

    Examples
    --------
    >>> method = Adagrad()
    >>> weights, gradient = np.float32([1, 2]), np.float32([0.5, -1])
    >>> method.update(weights, gradient, method.init(2), 0)[0].round(4)
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
        return updates.adagrad

    def starts(self) -> dict[str, float | None]:
        """Return the first value of the sums of squares."""
        return {"square": self.initial}

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        return decay, rate, self.epsilon


@dataclass(frozen=True)
class Adadelta(Elementwise):
    """w -= rate * x, x = g * sqrt(mean square of former x) / sqrt(mean square of g).

    M. Zeiler, arXiv 1212.5701.

    Parameters
    ----------
    learning_rate : float or Schedule
        1 in the paper.
    smoothing : float
        Decay of both mean squares, 0 <= smoothing < 1.
    epsilon : float
        Added to both under the root; without it no weight moves.
    weight_decay : float

    Examples
    --------
    >>> method = Adadelta()
    >>> weights, gradient = np.float32([1, 2]), np.float32([0.5, -1])
    >>> method.update(weights, gradient, method.init(2), 0)[0].round(4)
    array([0.9968, 2.0032], dtype=float32)
    """

    learning_rate: float | Schedule = 1.0
    smoothing: float = 0.9
    epsilon: float = 1e-6
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "smoothing")
        at_least_zero(self, "epsilon", "weight_decay")

    def kernel(self) -> Any:
        """Return the kernel."""
        return updates.adadelta

    def starts(self) -> dict[str, float | None]:
        """Return the mean squares of the gradients and of the steps, zeros."""
        return {"square": 0.0, "step": 0.0}

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        return decay, rate, self.smoothing, 1 - self.smoothing, self.epsilon


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
        Scale by the gradient's standard deviation: subtract the square of its mean.

    Examples
    --------
    >>> method = RMSprop()
    >>> weights, gradient = np.float32([1, 2]), np.float32([0.5, -1])
    >>> method.update(weights, gradient, method.init(2), 0)[0].round(4)
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
        return updates.rmsprop

    def starts(self) -> dict[str, float | None]:
        """Return the mean square, and the mean and the velocity if they are used."""
        mean, velocity = (0.0 if used else None for used in (self.centered, self.momentum))
        return {"square": 0.0, "mean": mean, "velocity": velocity}

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        return decay, rate, self.smoothing, 1 - self.smoothing, self.epsilon, self.momentum


@dataclass(frozen=True)
class Ftrl(Elementwise):
    """FTRL-Proximal: weights whose accumulated gradient stays within ``l1`` are exactly 0.

    H. B. McMahan et al., Ad Click Prediction: a View from the Trenches, KDD (2013), algorithm 1.
    The paper begins at 0, and first weights count as 0. So use it for linear models and embeddings;
    in other models the first steps pull weights far towards 0.

    Parameters
    ----------
    learning_rate : float or Schedule
        The paper's alpha, above 0.
    beta : float
        The paper's beta; it shortens the first steps.
    l1, l2 : float
        Strength of the penalties.
    initial : float
        First value of the sums of squares.
    weight_decay : float
        ``weight_decay * w`` is added to the gradient (the "shrinkage" of other implementations),
        in addition to ``l2``, which is part of the leader's objective.

    Examples
    --------
    >>> method = Ftrl()
    >>> weights, gradient = np.float32([1, 2]), np.float32([0.5, -1])
    >>> method.update(weights, gradient, method.init(2), 0)[0].round(4)
    array([0.3167, 1.025 ], dtype=float32)
    """

    learning_rate: float | Schedule = 0.05
    beta: float = 1.0
    l1: float = 0.0
    l2: float = 0.0
    initial: float = 0.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_zero(self, "beta", "l1", "l2", "initial", "weight_decay")
        if not isinstance(self.learning_rate, Schedule) and self.learning_rate == 0:
            raise SettingsError(
                f"Ftrl: expected learning_rate > 0, found {self.learning_rate!r}, by which it "
                "divides"
            )

    def kernel(self) -> Any:
        """Return the kernel."""
        return updates.ftrl

    def starts(self) -> dict[str, float | None]:
        """Return the paper's z, and the sums of squares."""
        return {"tilt": 0.0, "square": self.initial}

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        if not rate > 0:
            raise SettingsError(
                f"Ftrl: expected a learning rate > 0 in iteration {iteration}, found {rate!r}, by "
                "which it divides"
            )
        return decay, 1 / rate, self.beta, self.l1, self.l2
