"""Ftrl: follow the regularised leader, for sparse models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daskdl.errors import SettingsError
from daskdl.kernels.optim import sgd as descent
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.method import at_least_zero
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class Ftrl(Elementwise):
    """FTRL-Proximal: weights whose accumulated gradient stays within ``l1`` are exactly 0.

    H. B. McMahan et al., Ad Click Prediction: a View from the Trenches, KDD (2013), algorithm 1.
    The first weights count as if they were 0, where the paper begins: it is a method for linear
    models and embeddings, and draws the weights of other models far towards 0 in its first steps.

    Parameters
    ----------
    learning_rate : float or Schedule
        The paper's alpha, above 0.
    beta : float
        The paper's; slows the first steps down.
    l1, l2 : float
        Strength of the penalties.
    initial : float
        What the sums of squares begin with.
    weight_decay : float
        ``weight_decay * w`` is added to the gradient (the "shrinkage" of other implementations),
        beside ``l2``, which is part of what the leader minimises.

    Examples
    --------
    >>> method = Ftrl()
    >>> weights, gradient = np.array([1.0, 2.0], np.float32), np.array([0.5, -1.0], np.float32)
    >>> after, state = method.update(weights, gradient, method.init(2), 0)
    >>> after.round(4)
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
        return descent.ftrl

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
