"""ClipNorm and ClipValue: methods around a method that sees no large gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.kernels.vectors.arithmetic import clip
from daskdl.kernels.vectors.reduce import BLOCK, squares_between
from daskdl.optim.method import State, Step, Stepped, Terms, Vector, at_least_zero
from daskdl.optim.wrapper import Wrapper
from daskdl.rows import Rows


@dataclass(frozen=True)
class ClipNorm(Wrapper):
    """Gradient clipping by norm: a longer gradient, over all parameters, is scaled down to it.

    The norm includes the rows of tables.

    R. Pascanu, T. Mikolov and Y. Bengio, arXiv 1211.5063. A worker can step its
    slices of the vector after a small exchange: a number for each :attr:`unit` of the vector.

    Parameters
    ----------
    method : Method
    norm : float
        Above 0.

    Examples
    --------
    >>> method = ClipNorm(SGD(0.1), 1.0)
    >>> weights, gradient = np.float32([1, 2]), np.float32([0.5, -1])
    >>> method.update(weights, gradient, method.init(2), 0)[0].round(4)
    array([0.9553, 2.0894], dtype=float32)
    """

    norm: float
    known: float | None = field(default=None, repr=False)  # sum of squares of the whole gradient

    unit = BLOCK

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.norm > 0:
            raise SettingsError(
                f"ClipNorm: expected norm > 0, found {self.norm!r}; leave ClipNorm out for no limit"
            )

    @property
    def joint(self) -> bool:
        """The norm is that of the whole vector."""
        return True

    @property
    def by_element(self) -> bool:
        """The norm is that of the whole vector."""
        return False

    def term_starts(self, size: int) -> NDArray[np.int64]:
        """Return the first index of each block."""
        return np.arange(0, size, BLOCK)

    def terms_at(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Terms:
        """Return the sum of squares of each block of the gradient, (G, 1)."""
        starts = self.term_starts(gradient.size)
        stops = np.minimum(starts + BLOCK, gradient.size)
        return squares_between(gradient, starts, stops)[:, None]

    def row_terms(self, gradients: Sequence[Rows]) -> list[NDArray[np.float64]]:
        """Return the sum of squares of each row."""
        return [rows.squares() for rows in gradients]

    def knowing(
        self, terms: NDArray[np.float64], row_terms: Sequence[NDArray[np.float64]] = ()
    ) -> Self:
        """Return the method with the sum of squares of the whole gradient."""
        total = float(np.ascontiguousarray(terms[:, 0]).sum())
        return replace(self, known=total + sum(float(of.sum()) for of in row_terms))

    def stepped(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Stepped:
        """Return new weights and state."""
        if self.known is None:
            known = self.knowing(self.terms_at(weights, gradient, state, at))
            return known.stepped(weights, gradient, state, at)
        share = at.scale * self._share(at.scale * at.scale * self.known)
        return self.method.update(weights, gradient, state, at.iteration, share, at.overwrite)

    def init_rows(self, size: int) -> State:
        """Return the inner method's state."""
        return self.rows_of(size)

    def step_rows(self, name: str, table: Vector, rows: Rows, state: State, at: Step) -> None:
        """Step the rows of a table, in place."""
        total = float(rows.squares().sum()) if self.known is None else self.known
        share = at.scale * self._share(at.scale * at.scale * total)
        self.method.update_rows(name, table, rows, state, at.iteration, share)

    def _share(self, total: float) -> float:
        """Return the factor for a gradient whose sum of squares is ``total``."""
        norm = math.sqrt(total)
        return self.norm / norm if norm > self.norm else 1.0


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
    >>> weights, gradient = np.float32([1, 2]), np.float32([0.5, -1])
    >>> method.update(weights, gradient, method.init(2), 0)[0].round(4)
    array([0.98, 2.02], dtype=float32)
    """

    value: float

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_zero(self, "value")

    def stepped(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Stepped:
        """Return new weights and state."""
        clipped = clip(gradient, self.value, at.scale)
        return self.method.update(weights, clipped, state, at.iteration, overwrite=at.overwrite)

    def init_rows(self, size: int) -> State:
        """Return the inner method's state."""
        return self.rows_of(size)

    def step_rows(self, name: str, table: Vector, rows: Rows, state: State, at: Step) -> None:
        """Step the rows of a table, in place."""
        values = clip(rows.values.reshape(-1), self.value, at.scale)
        clipped = replace(rows, values=values.reshape(rows.values.shape))
        self.method.update_rows(name, table, clipped, state, at.iteration)
