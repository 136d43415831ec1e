"""A method around another one: the base, means of gradients, and means of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from daskdl.errors import SettingsError
from daskdl.kernels.optim import updates
from daskdl.kernels.optim.steps import step
from daskdl.optim.layout import Layout
from daskdl.optim.method import Method, State, Step, Stepped, Vector, below_one
from daskdl.optim.schedules.schedule import whole


@dataclass(frozen=True)
class Wrapper(Method):
    """Base of these methods, which are around the one inside."""

    method: Method

    def __post_init__(self) -> None:
        if not isinstance(self.method, Method):
            raise SettingsError(
                f"{type(self).__name__}: expected a Method as the first argument, found "
                f"{self.method!r}"
                "; write the method inside first, as in ClipNorm(Adam(), 1.0)"
            )

    @property
    def by_element(self) -> bool:
        """Whether the method inside is so."""
        return self.method.by_element

    def init(self, size: int) -> State:
        """Return the state of the method inside, and the wrapper's own state."""
        inner, of_wrapper = self.method.init(size), self.own_state(size)
        twice = inner.keys() & of_wrapper.keys()
        if twice:
            raise SettingsError(
                f"{type(self).__name__}: expected to be once around a method, found it again "
                f"inside {self.method!r}"
                "; leave one of them out"
            )
        return inner | of_wrapper

    def own_state(self, size: int) -> State:
        """Return the wrapper's own state, under names with a prefix of its own."""
        return {}

    def on(self, layout: Layout) -> Self:
        """Return the same around the method for a model's parameters."""
        return replace(self, method=self.method.on(layout))

    def part(self, slices: Sequence[slice]) -> Self | None:
        """Return the same around the method for slices; None where the one inside is joint."""
        inner = None if self.method.joint else self.method.part(slices)
        return None if inner is None else replace(self, method=inner)

    def inner(self, state: State) -> State:
        """Return the state of the method inside."""
        of_wrapper = self.own_state(0)
        return {name: value for name, value in state.items() if name not in of_wrapper}

    def rows_of(self, size: int) -> State:
        """Return the state of tables of the one inside, for those that have no own.

        Raises SettingsError when the method inside has no step by rows.
        """
        if self.method.joint:
            raise SettingsError(
                f"{type(self).__name__}: expected a method that needs no sum over the whole "
                f"gradient to train tables by rows, found {self.method!r} inside; put that around "
                "this, or make the tables with sparse=False"
            )
        return self.method.init_rows(size)

    def observe(self, state: State, metric: float) -> State:
        """Return the state after a validation."""
        return self.method.observe(state, metric)

    def rate_at(self, iteration: int, state: State | None = None) -> float:
        """Return the learning rate of an iteration."""
        return self.method.rate_at(iteration, state)


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

    def own_state(self, size: int) -> State:
        """Return the sum of the gradients since the last step, zeros."""
        return {GRADIENT: np.zeros(size, np.float32)}

    def rate_at(self, iteration: int, state: State | None = None) -> float:
        """Return the learning rate of the step that an iteration is part of."""
        return self.method.rate_at(iteration // self.over, state)

    def stepped(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Stepped:
        """Return new weights and state; between steps, those that there were."""
        factors = np.array([[-at.scale / self.over, 0.0, 1.0]], gradient.dtype)
        old = np.asarray(state[GRADIENT], gradient.dtype)
        (total,) = step(updates.sgd, old, gradient, [], factors, overwrite=at.overwrite)
        if (at.iteration + 1) % self.over:
            return weights, state | {GRADIENT: total}
        inner, count = self.inner(state), at.iteration // self.over
        new, after = self.method.update(weights, total, inner, count, overwrite=at.overwrite)
        return new, after | {GRADIENT: np.zeros_like(total)}


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
    >>> weights, gradient = np.float32([1, 2]), np.float32([0.5, -1])
    >>> method.update(weights, gradient, method.init(2), 0)[0].round(4)
    array([0.95, 2.1 ], dtype=float32)
    """

    decay: float = 0.999

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "decay")

    def own_state(self, size: int) -> State:
        """Return the average, zeros."""
        return {WEIGHTS: np.zeros(size, np.float32)}

    def averaged(self, state: State) -> Vector:
        """Return the averaged weights, (size,); zeros before the first step."""
        return state[WEIGHTS]

    def stepped(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Stepped:
        """Return new weights and state."""
        new, after = self.method.update(weights, gradient, self.inner(state), *at[:3])
        share = 1 - self.decay if at.iteration else 1.0
        # average - share * (average - new), as a step of SGD with decay
        factors = np.array([[-1.0, 1.0, share]], new.dtype)
        old = np.asarray(state[WEIGHTS], new.dtype)
        (average,) = step(updates.sgd, old, new, [], factors, overwrite=at.overwrite)
        return new, after | {WEIGHTS: average}
