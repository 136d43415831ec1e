"""LARS: momentum whose rate goes by each parameter's norm over its gradient's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskdl.kernels.optim import sgd as descent
from daskdl.optim.grouping import Grouping
from daskdl.optim.layerwise import Layerwise, Norms
from daskdl.optim.method import State, Vector, at_least_zero, below_one
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class LARS(Layerwise):
    """w -= v, v = momentum * v + rate * local * (g + weight_decay * w) for each parameter.

    Y. You, I. Gitman and B. Ginsburg, arXiv 1708.03888, algorithm 1: local is
    ``trust * |w| / (|g| + weight_decay * |w|)``, and 1 where a norm is 0.

    Parameters
    ----------
    learning_rate : float or Schedule
    momentum : float
    weight_decay : float
    trust : float
        The paper's eta.
    vectors : bool
        False: parameters of one axis have a local rate of 1.

    Examples
    --------
    >>> from daskdl.optim import Layout
    >>> model = nn.Linear(3, 2)
    >>> method = LARS(0.1, momentum=0.9).on(Layout.of(model))
    >>> sorted(method.init(model.flat.size))
    ['velocity']
    """

    learning_rate: float | Schedule = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    trust: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "momentum")
        at_least_zero(self, "weight_decay", "trust")

    def slots(self, size: int) -> State:
        """Return the velocity, zeros."""
        return {"velocity": np.zeros(size, np.float32)}

    def squares(
        self,
        weights: Vector,
        gradient: Vector,
        state: State,
        iteration: int,
        scale: float,
        settings: tuple[Norms, Norms],
    ) -> Norms:
        """Return the sums of squares of the weights beside those of the gradient."""
        of_gradient = scale * scale * self.squares_of(gradient)
        return np.stack([self.squares_of(weights), of_gradient], 1)

    def update_groups(
        self,
        weights: Vector,
        gradient: Vector,
        state: State,
        iteration: int,
        scale: float,
        groups: Grouping,
        overwrite: bool = False,
    ) -> tuple[Vector, State]:
        """Return new weights and state."""
        parts, decays = settings = self._settings(groups)
        own = None
        if self.known is None:
            own = self.squares(weights, gradient, state, iteration, scale, settings)
        w, g = self._norms(own)
        local = np.ones_like(w)
        usual = (w > 0) & (g > 0) & self._adapted()
        local[usual] = self.trust * w[usual] / (g + decays * w)[usual]
        local[np.isnan(g)] = np.nan
        one = np.ones_like(w)
        rates = self.rate_at(iteration, state) * parts * local
        rows = np.stack(
            [scale * one, decays, one, self.momentum * one, rates, np.zeros_like(w)], axis=1
        )
        held = [state["velocity"]]
        new, velocity = self.run(descent.momentum, weights, gradient, held, rows, overwrite)
        return new, {"velocity": velocity} | self.kept(state)
