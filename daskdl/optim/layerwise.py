"""Methods whose steps depend on the norm of each parameter, so that they need the layout."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.kernels.optim.steps import step
from daskdl.kernels.vectors.reduce import BLOCK, squares_between
from daskdl.optim.groups import Grouped
from daskdl.optim.layout import Layout
from daskdl.optim.method import State, Step, Vector
from daskdl.optim.ranges import Grouping, Ranges

Norms = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Layerwise(Grouped):
    """Base of these methods.

    A worker can step its slices of the vector after a small exchange: two numbers for each
    :attr:`unit` of each parameter, see :class:`Method`. :meth:`on`, :meth:`part` and
    :meth:`knowing` set ``layout``, ``ranges`` and ``known``.
    """

    vectors: bool = True
    layout: Layout | None = field(default=None, repr=False)
    ranges: Ranges | None = field(default=None, repr=False)
    known: tuple[float, ...] | None = field(default=None, repr=False)

    weight_decay = 0.0  # subclasses have a field of that name
    unit = BLOCK

    @property
    def joint(self) -> bool:
        """Norms are of whole parameters."""
        return True

    def bound(self, layout: Layout) -> Self:
        """Return the method for a model's parameters without frozen ones."""
        return replace(self, layout=layout, ranges=layout.ranges)

    def init(self, size: int) -> State:
        """Return the state before the first step."""
        expected = self._bound()[1].size
        if size != expected:
            raise SettingsError(
                f"{type(self).__name__}: expected a vector of the {expected} numbers of its "
                f"layout, found {size}"
                "; call on(Layout.of(model)) for this model"
            )
        return super().init(size)

    def part(self, slices: Sequence[slice]) -> Self | None:
        """Return the method for adjacent slices."""
        return replace(self, ranges=self._bound()[1].part(slices))

    def term_starts(self, size: int) -> NDArray[np.int64]:
        """Return the first index of each stretch within one parameter and one block."""
        return self._bound()[0].ranges.cut(BLOCK)[0]

    def knowing(self, terms: Norms, row_terms: Sequence[Norms] = ()) -> Self:
        """Return the method with the squared norms of all parameters."""
        layout = self._bound()[0]
        return replace(self, known=tuple(self._by_parameter(terms, layout.ranges).tolist()))

    @abstractmethod
    def terms_at(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Norms:
        """Return the sums of squares by stretch, two for each, (G, 2)."""

    def squares_of(self, vector: Vector) -> Norms:
        """Return the sum of squares of each stretch within one parameter and one block, (G,)."""
        starts, stops, _ = self._bound()[1].cut(BLOCK)
        return squares_between(vector, starts, stops)

    def _norms(self, terms: Norms | None) -> tuple[Norms, Norms]:
        """Return the two norms of each parameter, from all terms or from ``known``."""
        if self.known is None:
            assert terms is not None
            sums = self._by_parameter(terms, self._bound()[1])
        else:
            sums = np.array(self.known)
        first, second = np.sqrt(sums).reshape(2, -1)
        return first, second

    def _by_parameter(self, terms: Norms, ranges: Ranges) -> Norms:
        """Add up terms by parameter, in their order: two sums of each, (2 P,)."""
        count, (_, _, kinds) = len(self._bound()[0].names), ranges.cut(BLOCK)
        return np.concatenate([np.bincount(kinds, column, count) for column in terms.T])

    def run(
        self,
        kernel: Any,
        weights: Vector,
        gradient: Vector,
        state: Sequence[Any],
        rows: Any,
        overwrite: bool = False,
    ) -> list[Any]:
        """Run a kernel with a row of factors for each parameter, (P, F)."""
        table = np.ascontiguousarray(rows, weights.dtype)
        ranges = self._bound()[1].joined().arrays
        return step(kernel, weights, gradient, state, table, ranges, overwrite)

    def _settings(self, groups: Grouping) -> tuple[Norms, Norms]:
        """Return the factor of the rate, and the weight decay, of each parameter."""
        layout, ranges = self._bound()
        kinds = np.zeros(len(layout.names), int)
        if groups.ranges is not None:
            stops, group = groups.ranges.arrays
            for here, place in ranges:
                if here.start < here.stop:
                    kinds[place] = group[np.searchsorted(stops, here.start, "right")]
        decays = [self.weight_decay if decay is None else decay for decay in groups.decays]
        return np.array(groups.rates)[kinds], np.array(decays)[kinds]

    def _adapted(self) -> NDArray[np.bool_]:
        """Return the parameters that are scaled by their norms."""
        return np.array([self.vectors or len(s) > 1 for s in self._bound()[0].shapes], bool)

    def _bound(self) -> tuple[Layout, Ranges]:
        if self.layout is None or self.ranges is None:
            raise SettingsError(
                f"{type(self).__name__}: expected on(Layout.of(model)) before a step, which goes "
                "by the norm of each parameter; found a method that knows none"
            )
        return self.layout, self.ranges
