"""ClipValue: a method that sees each number of the gradient within bounds."""

from __future__ import annotations

from dataclasses import dataclass

from daskdl.kernels.clip import clip
from daskdl.optim.method import State, Vector, at_least_zero
from daskdl.optim.wrapper import Wrapper


@dataclass(frozen=True)
class ClipValue(Wrapper):
    """What is below ``-value`` or above ``value`` in the gradient becomes that.

    Parameters
    ----------
    method : Method
    value : float
    """

    value: float

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_zero(self, "value")

    def update(
        self, weights: Vector, gradient: Vector, state: State, iteration: int, scale: float = 1.0
    ) -> tuple[Vector, State]:
        """Return new weights and state."""
        return self.method.update(weights, clip(gradient, self.value, scale), state, iteration)
