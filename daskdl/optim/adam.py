"""Adam: steps scaled by running moments of the gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import inf
from typing import Any

from daskdl.errors import SettingsError
from daskdl.kernels import moments
from daskdl.kernels.reduce import sum_of_squares
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.grouping import Grouping
from daskdl.optim.method import State, Vector, at_least_zero, below_one, in_range
from daskdl.optim.schedules.cosine import Cosine
from daskdl.optim.schedules.schedule import Schedule
from daskdl.optim.schedules.warmup import Warmup


@dataclass(frozen=True)
class Adam(Elementwise):
    """Steps scaled by running moments of the gradient.

    D. Kingma and J. Ba, arXiv 1412.6980; AMSGrad: S. Reddi et al., arXiv 1904.09237.

    Parameters
    ----------
    learning_rate : float or Schedule
    beta1, beta2 : float
        Decay of the first and second moment.
    epsilon : float
    weight_decay : float
        ``weight_decay * w`` is added to the gradient. :class:`AdamW` keeps it out of the moments.
    clip_norm : float, optional
        Short for :class:`ClipNorm` around the method.
    warmup : int
        Short for :class:`Warmup` over so many iterations.
    decay_over : int, optional
        Short for :class:`Cosine` from the end of the warm-up to 5 % of the rate at this iteration.
    amsgrad : bool
        Scale by the largest second moment so far.
    """

    learning_rate: float | Schedule = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    clip_norm: float | None = None
    warmup: int = 0
    decay_over: int | None = None
    amsgrad: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        below_one(self, "beta1", "beta2")
        at_least_zero(self, "epsilon", "weight_decay")
        in_range(self, "warmup", self.warmup, 0, inf)
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise SettingsError(
                f"{type(self).__name__}: expected clip_norm > 0 or None, found {self.clip_norm!r}"
            )
        if self.decay_over is not None and self.decay_over < self.warmup:
            raise SettingsError(
                f"{type(self).__name__}: expected {self.warmup} <= decay_over, since the rate "
                f"falls after its warm-up, found {self.decay_over!r}"
            )
        if isinstance(self.learning_rate, Schedule) and (self.warmup or self.decay_over):
            raise SettingsError(
                f"{type(self).__name__}: expected a number as learning_rate with warmup or "
                f"decay_over, found {self.learning_rate!r}; use Warmup(...) around it"
            )

    @property
    def by_element(self) -> bool:
        """Any slice may be stepped by itself, unless the norm of the whole is clipped."""
        return self.clip_norm is None

    def rate_at(self, iteration: int, state: State | None = None) -> float:
        """Return the learning rate of an iteration."""
        rate = self.learning_rate
        if isinstance(rate, Schedule) or not (self.warmup or self.decay_over is not None):
            return super().rate_at(iteration, state)
        then: float | Schedule = rate
        if self.decay_over is not None:
            then = Cosine(rate, max(1, self.decay_over - self.warmup), 0.05 * rate)
        return Warmup(then, self.warmup)(iteration)

    def kernel(self) -> Any:
        """Return the kernel."""
        return moments.amsgrad if self.amsgrad else moments.adam

    def starts(self) -> dict[str, float | None]:
        """Return both moments and the largest second one, zeros."""
        names = ("mean", "square", "largest") if self.amsgrad else ("mean", "square")
        return dict.fromkeys(names, 0.0)

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        return self.corrected(iteration, rate, decay, 1.0)

    def corrected(
        self, iteration: int, rate: float, decay: float, keep: float
    ) -> tuple[float, ...]:
        """Return the kernel's factors, with the bias of the moments corrected."""
        t = iteration + 1
        correction = math.sqrt(1 - self.beta2**t)
        return (
            decay,
            self.beta1,
            1 - self.beta1,
            self.beta2,
            1 - self.beta2,  # here and not in float32, whose 0.999 is 1e-5 of this away
            rate * correction / (1 - self.beta1**t),
            self.epsilon * correction,
            keep,
            0.0,
        )

    def update_groups(
        self,
        weights: Vector,
        gradient: Vector,
        state: State,
        iteration: int,
        scale: float,
        groups: Grouping,
    ) -> tuple[Vector, State]:
        """Return new weights and state."""
        if self.clip_norm is not None:
            norm = abs(scale) * math.sqrt(sum_of_squares(gradient))
            scale *= min(1.0, self.clip_norm / max(norm, 1e-30))
        return super().update_groups(weights, gradient, state, iteration, scale, groups)
