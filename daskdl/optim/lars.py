"""LARS and LAMB: the norm of each parameter decides the length of its step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from daskdl.kernels.optim import updates
from daskdl.optim.layerwise import Layerwise, Norms
from daskdl.optim.method import State, Step, Stepped, Vector, at_least_zero, below_one
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

    def terms_at(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Norms:
        """Return the sums of squares of the weights and of the gradient."""
        of_gradient = at.scale * at.scale * self.squares_of(gradient)
        return np.stack([self.squares_of(weights), of_gradient], 1)

    def stepped(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Stepped:
        """Return new weights and state."""
        parts, decays = self._settings(at.groups)
        squares = self.terms_at(weights, gradient, state, at) if self.known is None else None
        w, g = self._norms(squares)
        local = np.ones_like(w)
        usual = (w > 0) & (g > 0) & self._adapted()
        local[usual] = self.trust * w[usual] / (g + decays * w)[usual]
        local[np.isnan(g)] = np.nan
        one = np.ones_like(w)
        rates = self.rate_at(at.iteration, state) * parts * local
        rows = np.stack(
            [at.scale * one, decays, one, self.momentum * one, rates, np.zeros_like(w)], axis=1
        )
        slots = [state["velocity"]]
        new, velocity = self.run(updates.momentum, weights, gradient, slots, rows, at.overwrite)
        return new, {"velocity": velocity} | self.schedule_state(state)


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
        Largest norm of a parameter; a larger one counts as this.
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

    def terms_at(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Norms:
        """Return the sums of squares of the weights and of r."""
        back, *_ = self._back(weights, gradient, state, at)
        return np.stack([self.squares_of(weights), self.squares_of(back)], 1)

    def stepped(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Stepped:
        """Return new weights and state."""
        parts, _ = self._settings(at.groups)
        back, mean, square = self._back(weights, gradient, state, at)
        squares = None
        if self.known is None:
            squares = np.stack([self.squares_of(weights), self.squares_of(back)], 1)
        w, r = self._norms(squares)
        ratio = np.ones_like(w)
        usual = (w > 0) & (r > 0) & self._adapted()
        ratio[usual] = np.minimum(w, self.most)[usual] / r[usual]
        rates = self.rate_at(at.iteration, state) * parts * ratio
        rows = np.stack([np.ones_like(w), np.zeros_like(w), -rates], axis=1)
        (new,) = self.run(updates.sgd, weights, back, [], rows, at.overwrite)
        return new, {"mean": mean, "square": square} | self.schedule_state(state)

    def _back(self, weights: Vector, gradient: Vector, state: State, at: Step) -> list[Vector]:
        """Return -r and the new moments."""
        t, (_, decays) = at.iteration + 1, self._settings(at.groups)
        correction = math.sqrt(1 - self.beta2**t)
        row = [
            *(at.scale, 0.0, self.beta1, 1 - self.beta1, self.beta2, 1 - self.beta2),
            *(correction / (1 - self.beta1**t), self.epsilon * correction, 0.0, 0.0),
        ]
        rows = np.tile(row, (len(decays), 1))
        rows[:, 8] = -decays  # in place of the weights, nothing is left of them but their decay
        return self.run(updates.adam, weights, gradient, [state["mean"], state["square"]], rows)
