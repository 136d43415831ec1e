"""Plateau: a learning rate that falls when a metric has not become better for a while."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.optim.method import at_least_zero, in_range
from daskdl.optim.schedules.schedule import Schedule, whole


@dataclass(frozen=True)
class Plateau(Schedule):
    """``rate`` times ``factor`` for each time that the metric stopped improving.

    The training loop measures the metric, for instance after each epoch, and passes it to the
    method's ``observe``. The learning rate follows from the state, not from the iteration.

    Parameters
    ----------
    rate : float
        The first learning rate.
    factor : float
        0 <= factor < 1.
    patience : int
        Number of measurements without improvement before the rate falls.
    threshold : float
        Least improvement, as a share of the best; an absolute difference if not ``relative``.
    relative : bool
    cooldown : int
        Number of measurements after a fall that do not count.
    lowest : float
        Lowest rate.
    higher_is_better : bool
        Whether a higher metric is better; a lower loss is.

    Examples
    --------
    >>> schedule = Plateau(1.0, factor=0.5, patience=0)
    >>> state = schedule.observe(schedule.init(), 3.0)
    >>> schedule.at(10, state), schedule.at(20, schedule.observe(state, 3.0))
    (1.0, 0.5)
    """

    rate: float
    factor: float = 0.1
    patience: int = 10
    threshold: float = 1e-4
    relative: bool = True
    cooldown: int = 0
    lowest: float = 0.0
    higher_is_better: bool = False

    def __post_init__(self) -> None:
        at_least_zero(self, "rate", "threshold", "lowest")
        in_range(self, "factor", self.factor, 0, 1)
        whole(self, "patience", 0)
        whole(self, "cooldown", 0)

    def __call__(self, iteration: int) -> float:
        """Return the first learning rate, before any metric was measured."""
        return float(self.rate)

    def init(self) -> dict[str, NDArray[Any]]:
        """Return the rate, the best metric, how many were worse since, and the cooldown left."""
        best = -math.inf if self.higher_is_better else math.inf
        return _scalars(rate=self.rate, best=best, bad=0, rest=0)

    def at(self, iteration: int, state: dict[str, NDArray[Any]]) -> float:
        """Return the learning rate."""
        return float(state["rate"])

    def observe(self, state: dict[str, NDArray[Any]], metric: float) -> dict[str, NDArray[Any]]:
        """Return the state after a measurement; NaN does not improve."""
        rate, best, bad, rest = (float(state[name]) for name in ("rate", "best", "bad", "rest"))
        if self._better(metric, best):
            best, bad = float(metric), 0.0
        else:
            bad += 1
        if rest > 0:
            rest, bad = rest - 1, 0.0
        if bad > self.patience:
            rate, rest, bad = max(rate * self.factor, min(rate, self.lowest)), self.cooldown, 0.0
        return _scalars(rate=rate, best=best, bad=bad, rest=rest)

    def _better(self, metric: float, best: float) -> bool:
        sign = 1 if self.higher_is_better else -1
        bound = best
        if math.isfinite(best):
            bound += sign * self.threshold * (best if self.relative else 1)
        return sign * metric > sign * bound


def _scalars(**values: float) -> dict[str, NDArray[Any]]:
    return {name: np.array(value, np.float64) for name, value in values.items()}
