"""ClipNorm: a method that sees no gradient longer than a norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.kernels.vectors.reduce import sum_of_squares
from daskdl.optim.method import State, Vector
from daskdl.optim.wrapper import Wrapper
from daskdl.rows import Rows


@dataclass(frozen=True)
class ClipNorm(Wrapper):
    """A gradient whose Euclidean norm, over all parameters, is larger is scaled down to it.

    The rows of tables count like all else.

    R. Pascanu, T. Mikolov and Y. Bengio, arXiv 1211.5063. Whoever owns slices of the vector can
    step them after a sum of one number over all owners, as :class:`Layerwise` shows.

    Parameters
    ----------
    method : Method
    norm : float
        Above 0.
    """

    norm: float
    known: tuple[float, ...] | None = field(default=None, repr=False)

    joint = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.norm > 0:
            raise SettingsError(f"ClipNorm: expected norm > 0, found {self.norm!r}")

    @property
    def by_element(self) -> bool:
        """The norm is that of the whole vector."""
        return False

    def part(self, slices: Sequence[slice], reduces: bool = False) -> Self | None:
        """Return the same for slices side by side; None for an engine that adds up no sums."""
        inner = self.method.part(slices) if reduces else None
        return None if inner is None else replace(self, method=inner)

    def sums(
        self,
        weights: Vector,
        gradient: Vector,
        state: State,
        iteration: int,
        scale: float = 1.0,
    ) -> NDArray[np.float64]:
        """Return the sum of squares of the gradient, (1,)."""
        return np.array([scale * scale * sum_of_squares(gradient)])

    def knowing(self, sums: Sequence[float] | NDArray[np.float64]) -> Self:
        """Return the same with the sums over all slices."""
        return replace(self, known=tuple(map(float, sums)))

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
        (total,) = self.known or self.sums(weights, gradient, state, iteration, scale)
        share = scale * self._share(total)
        return self.method.update(weights, gradient, state, iteration, share, overwrite)

    def init_rows(self, size: int) -> State:
        """Return the state of the one inside."""
        return self.rows_of(size)

    def row_sums(self, gradients: Sequence[Rows], scale: float = 1.0) -> NDArray[np.float64]:
        """Return the sum of squares of all rows, (1,)."""
        return np.array([scale * scale * sum(rows.squares() for rows in gradients)])

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
        (total,) = self.known or self.row_sums([gradient], scale)
        share = scale * self._share(total)
        self.method.update_rows(name, table, gradient, state, iteration, share)

    def _share(self, total: float) -> float:
        """Return what a gradient of this sum of squares is multiplied with."""
        norm = math.sqrt(total)
        return self.norm / norm if norm > self.norm else 1.0
