"""LBFGS: a quasi-Newton method for gradients of the full batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskdl.kernels.vectors.arithmetic import dot
from daskdl.optim.method import State, Step, Stepped, Vector, at_least_zero
from daskdl.optim.scheduled import Scheduled
from daskdl.optim.schedules.schedule import Schedule, whole

#: A pair whose y and s have no more in common says nothing of the curvature.
LEAST_CURVATURE = 1e-10


@dataclass(frozen=True)
class LBFGS(Scheduled):
    """Steps along the gradient times an inverse Hessian, made of the last steps.

    J. Nocedal and S. Wright, Numerical Optimization (2006), algorithm 7.4. As PyTorch's without a
    line search it makes one step of a fixed length for each gradient. Differences of gradients are
    its curvature: each iteration must have all samples. Its dot products are of the whole vector,
    so that slices cannot be stepped alone.

    Parameters
    ----------
    learning_rate : float or Schedule
        Length of a step; the absolute values of the first step sum to 1 at most.
    history : int
        Number of pairs (step, difference of gradients) to keep; each is two vectors of state.
    smallest_gradient : float
        There is no step if no number of the gradient is larger.
    smallest_change : float
        There is no step if it would lower the loss by no more, at first order.

    Examples
    --------
    >>> method, x, state = LBFGS(), np.array([3.0, -2.0], np.float32), None
    >>> state = method.init(2)
    >>> for i in range(8):
    ...     x, state = method.update(x, 2 * (x - 1), state, i)
    >>> x.round(3)
    array([1., 1.], dtype=float32)
    """

    learning_rate: float | Schedule = 1.0
    history: int = 10
    smallest_gradient: float = 1e-7
    smallest_change: float = 1e-9

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self, "history", 1)
        at_least_zero(self, "smallest_gradient", "smallest_change")

    def slots(self, size: int) -> State:
        """Return the last gradient, the last step, and the pairs, the oldest first; zeros."""
        names = [f"{kind}.{i:03d}" for i in range(self.history) for kind in ("moved", "changed")]
        return {name: np.zeros(size, np.float32) for name in ("gradient", "step", *names)}

    def stepped(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Stepped:
        """Return new weights and state; the history's vectors are not copied."""
        g = gradient * gradient.dtype.type(at.scale)
        if np.abs(g).max(initial=0) <= self.smallest_gradient:
            return weights.copy(), state
        pairs = [(state[f"moved.{i:03d}"], state[f"changed.{i:03d}"]) for i in range(self.history)]
        first = not state["gradient"].any()  # there may have been iterations without a step
        if not first:
            changed = g - state["gradient"]
            if dot(changed, state["step"]) > LEAST_CURVATURE:
                pairs = [*pairs[1:], (state["step"], changed)]
        along = _newton(g, pairs)
        length = self.rate_at(at.iteration, state)
        if first:
            length *= min(1.0, 1 / float(np.abs(g).sum(dtype=np.float64)))
        if dot(g, along) > -self.smallest_change:
            length = 0.0
        step = along * along.dtype.type(length)
        after = {"gradient": g, "step": step}
        for i, (moved, changed) in enumerate(pairs):
            after |= {f"moved.{i:03d}": moved, f"changed.{i:03d}": changed}
        return weights + step, after | self.schedule_state(state)


def _newton(g: Vector, pairs: list[tuple[Vector, Vector]]) -> Vector:
    """Return the negative gradient times the inverse Hessian of the pairs."""
    known = [(s, y, dot(y, s)) for s, y in pairs]
    known = [pair for pair in known if pair[2] > LEAST_CURVATURE]  # others are not there yet
    q, shares = -g, []
    for s, y, curvature in reversed(known):
        shares.append(dot(s, q) / curvature)
        q -= q.dtype.type(shares[-1]) * y
    if known:
        _, y, curvature = known[-1]
        q *= q.dtype.type(curvature / dot(y, y))
    for (s, y, curvature), share in zip(known, reversed(shares), strict=True):
        q += q.dtype.type(share - dot(y, q) / curvature) * s
    return q
