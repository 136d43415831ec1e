"""Cosine: a learning rate that falls along half a cosine, once or again and again."""

from __future__ import annotations

import math
from dataclasses import dataclass

from daskdl.errors import SettingsError
from daskdl.optim.method import at_least_zero
from daskdl.optim.schedules.schedule import Schedule, whole


@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a cosine from ``rate`` to ``end``; there it stays, or it begins again.

    I. Loshchilov and F. Hutter, SGDR, arXiv 1608.03983.

    Parameters
    ----------
    rate : float
        The first learning rate.
    over : int
        Iterations of the first half cosine.
    end : float
        The last learning rate.
    restarts : bool
        Begin again after each.
    stretch : int
        How many times as long as the one before each half cosine is.

    Examples
    --------
    >>> [round(Cosine(1.0, over=2)(i), 3) for i in range(4)]
    [1.0, 0.5, 0.0, 0.0]
    >>> [round(Cosine(1.0, over=2, restarts=True)(i), 3) for i in range(4)]
    [1.0, 0.5, 1.0, 0.5]
    """

    rate: float
    over: int
    end: float = 0.0
    restarts: bool = False
    stretch: int = 1

    def __post_init__(self) -> None:
        at_least_zero(self, "rate", "end")
        whole(self, "over", 1)
        whole(self, "stretch", 1)
        if self.stretch > 1 and not self.restarts:
            raise SettingsError(
                f"Cosine: expected restarts=True with stretch={self.stretch}, found restarts=False"
                "; leave stretch out, or restart"
            )

    def __call__(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        length = self.over
        if self.restarts and self.stretch == 1:
            iteration %= length
        while self.restarts and iteration >= length:
            iteration, length = iteration - length, length * self.stretch
        part = min(1.0, iteration / length)
        return self.end + (self.rate - self.end) * (1 + math.cos(math.pi * part)) / 2
