"""Polynomial, InverseTime and Cosine: learning rates that fall along a curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

from daskdl.errors import SettingsError
from daskdl.optim.method import at_least_zero
from daskdl.optim.schedules.schedule import Schedule, whole


@dataclass(frozen=True)
class Polynomial(Schedule):
    """``end + (rate - end) * (1 - iteration / over) ** power``, and ``end`` from ``over`` on.

    Parameters
    ----------
    rate : float
        The first learning rate.
    over : int
        The iteration at which the last one is reached.
    power : float
    end : float
        The last learning rate.

    Examples
    --------
    >>> [Polynomial(1.0, over=2)(i) for i in range(4)]
    [1.0, 0.5, 0.0, 0.0]
    """

    rate: float
    over: int
    power: float = 1.0
    end: float = 0.0

    def __post_init__(self) -> None:
        at_least_zero(self, "rate", "power", "end")
        whole(self, "over", 1)

    def __call__(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        if iteration >= self.over:
            return float(self.end)
        remaining = 1 - iteration / self.over
        return float(self.end + (self.rate - self.end) * remaining**self.power)


@dataclass(frozen=True)
class InverseTime(Schedule):
    """``rate / (1 + decay * iteration / over)`` (H. Robbins and S. Monro, 1951).

    Parameters
    ----------
    rate : float
        The first learning rate.
    decay : float
    over : int
        Iterations that count as one.

    Examples
    --------
    >>> [InverseTime(1.0, 1.0)(i) for i in (0, 1, 3)]
    [1.0, 0.5, 0.25]
    """

    rate: float
    decay: float
    over: int = 1

    def __post_init__(self) -> None:
        at_least_zero(self, "rate", "decay")
        whole(self, "over", 1)

    def __call__(self, iteration: int) -> float:
        """Return the learning rate of an iteration."""
        return float(self.rate / (1 + self.decay * iteration / self.over))


@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a cosine from ``rate`` to ``end``; then the rate stays, or restarts.

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
        Whether to begin again after each half cosine.
    stretch : int
        Length of each half cosine, relative to the one before.

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
