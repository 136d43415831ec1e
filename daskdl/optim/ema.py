"""EMA: a method that also keeps a moving average of the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskdl.kernels.optim import sgd as descent
from daskdl.kernels.optim.steps import step
from daskdl.optim.method import State, Vector, below_one
from daskdl.optim.wrapper import Wrapper

WEIGHTS = "ema.weights"


@dataclass(frozen=True)
class EMA(Wrapper):
    """average = decay * average + (1 - decay) * w after each step; the first one is w itself.

    B. Polyak and A. Juditsky, Acceleration of Stochastic Approximation by Averaging (1992). The
    average is what one validates and keeps: :meth:`averaged`.

    Parameters
    ----------
    method : Method
    decay : float
        0 <= decay < 1.

    Examples
    --------
    >>> method = EMA(SGD(0.1))
    >>> weights, gradient = np.array([1.0, 2.0], np.float32), np.array([0.5, -1.0], np.float32)
    >>> after, state = method.update(weights, gradient, method.init(2), 0)
    >>> after.round(4)
    array([0.95, 2.1 ], dtype=float32)
    """

    decay: float = 0.999

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "decay")

    def own(self, size: int) -> State:
        """Return the average, zeros."""
        return {WEIGHTS: np.zeros(size, np.float32)}

    def averaged(self, state: State) -> Vector:
        """Return the averaged weights, (size,); zeros before the first step."""
        return state[WEIGHTS]

    def update(
        self,
        weights: Vector,
        gradient: Vector,
        state: State,
        iteration: int,
        scale: float = 1.0,
        overwrite: bool = False,
    ) -> tuple[Vector, State]:
        """Return new weights and state."""
        inner = {name: value for name, value in state.items() if name != WEIGHTS}
        new, after = self.method.update(weights, gradient, inner, iteration, scale, overwrite)
        share = 1 - self.decay if iteration else 1.0
        # average - share * (average - new), as a step of SGD with decay
        factors = np.array([[-1.0, 1.0, share]], new.dtype)
        old = np.asarray(state[WEIGHTS], new.dtype)
        (average,) = step(descent.sgd, old, new, [], factors, overwrite=overwrite)
        return new, after | {WEIGHTS: average}
