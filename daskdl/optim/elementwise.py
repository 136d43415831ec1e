"""Methods that step each number alone: one kernel, a few vectors of state, a few factors."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from daskdl.kernels.optim.rows import step_rows
from daskdl.kernels.optim.steps import step
from daskdl.optim.groups import Grouped
from daskdl.optim.method import State, Step, Stepped, Vector
from daskdl.rows import Rows


class Elementwise(Grouped):
    """Base of these methods; a subclass defines its kernel, its state and its factors.

    Examples
    --------
    >>> from daskdl.optim import SGD
    >>> isinstance(SGD(), Elementwise), SGD().part([slice(0, 8)]) == SGD()
    (True, True)
    """

    @property
    def by_element(self) -> bool:
        """Any slice of the vector may be stepped alone."""
        return True

    @abstractmethod
    def kernel(self) -> Any:
        """Return the numba function of a step, see :func:`daskdl.kernels.optim.steps.step`."""

    @abstractmethod
    def starts(self) -> dict[str, float | None]:
        """Return the first value of each vector of the state, in the kernel's order.

        None stands for a vector that these settings do not need.
        """

    @abstractmethod
    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors after the gradient's scale, in an iteration from 0.

        With groups, ``rate`` and ``decay`` are the group's.
        """

    def slots(self, size: int) -> State:
        """Return the vectors of the state, float32 (size,)."""
        return {
            name: np.full(size, start, np.float32) if start else np.zeros(size, np.float32)
            for name, start in self.starts().items()
            if start is not None
        }

    def stepped(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Stepped:
        """Return new weights and state; ranges may differ in learning rate and decay."""
        rate, groups = self.rate_at(at.iteration, state), at.groups
        rows: list[Any] = []  # of what has a rate; the rest stays as it is
        numbers: list[int] = []
        for part, decay in zip(groups.rates, groups.decays, strict=True):
            numbers.append(len(rows) if part else -1)
            if part:
                factors = self.factors(at.iteration, rate * part, self.decay_of(decay))
                rows.append((at.scale, *factors))
        ranges = None
        if groups.ranges is not None:
            stops, kinds = groups.ranges.arrays
            ranges = stops, np.array(numbers)[kinds]
        starts = self.starts()
        new, *after = step(
            self.kernel(),
            weights,
            gradient,
            [None if start is None else state[name] for name, start in starts.items()],
            np.array(rows, weights.dtype),
            ranges,
            at.overwrite,
        )
        vectors = {n: a for n, a in zip(starts, after, strict=True) if a is not None}
        return new, vectors | self.schedule_state(state)

    def init_rows(self, size: int) -> State:
        """Return the state of tables."""
        return self.slots(size)

    def step_rows(self, name: str, table: Vector, rows: Rows, state: State, at: Step) -> None:
        """Step the rows of a table, in place, at the rate and weight decay of its group."""
        (part,), (decay,) = at.groups.rates, map(self.decay_of, at.groups.decays)
        if not part:
            return
        rate = self.rate_at(at.iteration, state) * part
        factors = np.array([at.scale, *self.factors(at.iteration, rate, decay)])
        slots = [None if s is None else state[name] for name, s in self.starts().items()]
        step_rows(self.kernel(), table, rows.ids, rows.values, slots, factors)
