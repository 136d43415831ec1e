"""LAMB: Adam whose step is as long as each parameter's norm says."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from daskdl.kernels.optim import adam as moments
from daskdl.kernels.optim import sgd as descent
from daskdl.optim.grouping import Grouping
from daskdl.optim.layerwise import Layerwise, Norms
from daskdl.optim.method import State, Vector, at_least_zero, below_one
from daskdl.optim.schedules.schedule import Schedule


@dataclass(frozen=True)
class LAMB(Layerwise):
    """w -= rate * norm(w) / norm(r) * r for each parameter, r Adam's step and ``weight_decay * w``.

    Y. You et al., Large Batch Optimization for Deep Learning, arXiv 1904.00962, algorithm 2, whose
    phi is the identity up to ``most``; the ratio is 1 where a norm is 0.

    Parameters
    ----------
    learning_rate : float or Schedule
    beta1, beta2 : float
        Decay of the first and second moment.
    epsilon : float
    weight_decay : float
    most : float
        A parameter's norm counts as no more than this.
    vectors : bool
        False: parameters of one axis have a ratio of 1, and step as by AdamW.

    Examples
    --------
    >>> from daskdl.optim import Layout
    >>> model = nn.Linear(3, 2)
    >>> method = LAMB(0.01, weight_decay=0.1).on(Layout.of(model))
    >>> sorted(method.init(model.flat.size))
    ['mean', 'square']
    """

    learning_rate: float | Schedule = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6
    weight_decay: float = 0.01
    most: float = math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "beta1", "beta2")
        at_least_zero(self, "epsilon", "weight_decay")

    def slots(self, size: int) -> State:
        """Return both moments, zeros."""
        return {"mean": np.zeros(size, np.float32), "square": np.zeros(size, np.float32)}

    def squares(
        self,
        weights: Vector,
        gradient: Vector,
        state: State,
        iteration: int,
        scale: float,
        settings: tuple[Norms, Norms],
    ) -> Norms:
        """Return the sums of squares of the weights beside those of r."""
        back, *_ = self._back(weights, gradient, state, iteration, scale, settings[1])
        return np.stack([self.squares_of(weights), self.squares_of(back)], 1)

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
        parts, decays = self._settings(groups)
        back, mean, square = self._back(weights, gradient, state, iteration, scale, decays)
        own = None
        if self.known is None:
            own = np.stack([self.squares_of(weights), self.squares_of(back)], 1)
        w, r = self._norms(own)
        ratio = np.ones_like(w)
        usual = (w > 0) & (r > 0) & self._adapted()
        ratio[usual] = np.minimum(w, self.most)[usual] / r[usual]
        rates = self.rate_at(iteration, state) * parts * ratio
        rows = np.stack([np.ones_like(w), np.zeros_like(w), -rates], axis=1)
        (new,) = self.run(descent.sgd, weights, back, [], rows, overwrite)
        return new, {"mean": mean, "square": square} | self.kept(state)

    def _back(
        self,
        weights: Vector,
        gradient: Vector,
        state: State,
        iteration: int,
        scale: float,
        decays: Norms,
    ) -> list[Vector]:
        """Return -r and the new moments."""
        t = iteration + 1
        correction = math.sqrt(1 - self.beta2**t)
        row = [
            *(scale, 0.0, self.beta1, 1 - self.beta1, self.beta2, 1 - self.beta2),
            *(correction / (1 - self.beta1**t), self.epsilon * correction, 0.0, 0.0),
        ]
        rows = np.tile(row, (len(decays), 1))
        rows[:, 8] = -decays  # in place of the weights, nothing is left of them but their decay
        return self.run(moments.adam, weights, gradient, [state["mean"], state["square"]], rows)
