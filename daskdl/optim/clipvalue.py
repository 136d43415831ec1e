"""ClipValue: a method that sees each number of the gradient within bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.vectors.arithmetic import clip
from daskdl.optim.method import State, Vector, at_least_zero
from daskdl.optim.wrapper import Wrapper
from daskdl.rows import Rows


@dataclass(frozen=True)
class ClipValue(Wrapper):
    """Gradient clipping by value: each number is limited to -value and value.

    Parameters
    ----------
    method : Method
    value : float

    Examples
    --------
    >>> method = ClipValue(SGD(0.1), 0.2)
    >>> weights, gradient = np.array([1.0, 2.0], np.float32), np.array([0.5, -1.0], np.float32)
    >>> after, state = method.update(weights, gradient, method.init(2), 0)
    >>> after.round(4)
    array([0.98, 2.02], dtype=float32)
    """

    value: float

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_zero(self, "value")

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
        clipped = clip(gradient, self.value, scale)
        return self.method.update(weights, clipped, state, iteration, overwrite=overwrite)

    def init_rows(self, size: int) -> State:
        """Return the state of the one inside."""
        return self.rows_of(size)

    def update_rows(
        self,
        name: str,
        table: NDArray[np.float32],
        gradient: Rows,
        state: State,
        iteration: int,
        scale: float = 1.0,
    ) -> None:
        """Step the rows of a table, in place."""
        values = clip(gradient.values.reshape(-1), self.value, scale)
        clipped = replace(gradient, values=values.reshape(gradient.values.shape))
        self.method.update_rows(name, table, clipped, state, iteration)
