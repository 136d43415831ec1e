"""What every optim method is: a step of weights, gradient and state over a flat vector."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError

Vector = NDArray[np.float32]
State = dict[str, Vector]


class Method(Protocol):
    """An optim method; it changes none of its inputs, since a task's result may be used again."""

    def init(self, size: int) -> State:
        """Return the state before the first step, arrays (size,)."""

    def update(
        self, weights: Vector, gradient: Vector, state: State, iteration: int
    ) -> tuple[Vector, State]:
        """Return new weights and state; ``iteration`` counts from 0."""


def in_range(method: object, name: str, value: float, low: float, high: float) -> None:
    """Raise a SettingsError unless low <= value < high."""
    if not low <= value < high:
        raise SettingsError(
            f"{type(method).__name__}: expected {low:g} <= {name} < {high:g}, found {value!r}"
        )
