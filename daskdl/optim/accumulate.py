"""Accumulate: a method that steps along the mean of several gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskdl.kernels.optim import sgd as descent
from daskdl.kernels.optim.steps import step
from daskdl.optim.method import State, Vector
from daskdl.optim.schedules.schedule import whole
from daskdl.optim.wrapper import Wrapper

GRADIENT = "accumulate.gradient"


@dataclass(frozen=True)
class Accumulate(Wrapper):
    """One step of the method every ``over`` iterations, as if by a batch so many times as large.

    Between the steps the weights stay. The method inside, its schedule too, counts its own steps.

    Parameters
    ----------
    method : Method
    over : int
        Iterations of a step, each with the same share.

    Examples
    --------
    >>> from daskdl.optim import SGD
    >>> method = Accumulate(SGD(0.1), over=2)
    >>> weights, state = np.array([1.0], np.float32), method.init(1)
    >>> for iteration, slope in enumerate([1.0, 3.0]):
    ...     gradient = np.array([slope], np.float32)
    ...     weights, state = method.update(weights, gradient, state, iteration)
    >>> weights
    array([0.8], dtype=float32)
    """

    over: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self, "over", 1)

    def own(self, size: int) -> State:
        """Return the sum of the gradients since the last step, zeros."""
        return {GRADIENT: np.zeros(size, np.float32)}

    def rate_at(self, iteration: int, state: State | None = None) -> float:
        """Return the learning rate of the step that an iteration is part of."""
        return self.method.rate_at(iteration // self.over, state)

    def update(
        self,
        weights: Vector,
        gradient: Vector,
        state: State,
        iteration: int,
        scale: float = 1.0,
        overwrite: bool = False,
    ) -> tuple[Vector, State]:
        """Return new weights and state; between steps, those that there were."""
        factors = np.array([[-scale / self.over, 0.0, 1.0]], gradient.dtype)
        old = np.asarray(state[GRADIENT], gradient.dtype)
        (total,) = step(descent.sgd, old, gradient, [], factors, overwrite=overwrite)
        if (iteration + 1) % self.over:
            return weights, state | {GRADIENT: total}
        inner = {name: value for name, value in state.items() if name != GRADIENT}
        new, after = self.method.update(
            weights, total, inner, iteration // self.over, overwrite=overwrite
        )
        return new, after | {GRADIENT: np.zeros_like(total)}
