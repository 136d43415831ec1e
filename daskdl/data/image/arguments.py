"""Checks of transforms' arguments, and whole numbers drawn from ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError

Range = float | tuple[float, float]


def pair(where: str, value: int | tuple[int, int]) -> tuple[int, int]:
    """Return (rows, columns) from one number for both, or from two."""
    numbers = (value, value) if isinstance(value, int | np.integer) else value
    if not (
        isinstance(numbers, tuple | list)
        and len(numbers) == 2
        and all(isinstance(n, int | np.integer) and n >= 1 for n in numbers)
    ):
        raise SettingsError(
            f"{where}: expected a whole number from 1, or (rows, columns), found {value!r}"
        )
    return int(numbers[0]), int(numbers[1])


def span(
    where: str, value: Range, around: float | None = None, least: float = -np.inf
) -> tuple[float, float]:
    """Return (low, high); a single number x is from ``around - x`` to ``around + x``, or itself."""
    low: Any
    high: Any
    if isinstance(value, tuple | list) and len(value) == 2:
        low, high = value
    else:
        low = high = value
        if around is not None and np.isscalar(value):
            low, high = max(around - float(value), least), around + float(value)  # type: ignore[arg-type]
    try:
        fits = least <= low <= high < np.inf
    except TypeError:
        fits = False
    if not fits:
        bound = "" if least == -np.inf else f" of at least {least:g}"
        raise SettingsError(f"{where}: expected a number or (low, high){bound}, found {value!r}")
    return float(low), float(high)


def share(where: str, value: float) -> float:
    """Return a probability or fraction, from 0 to 1."""
    if not isinstance(value, float | int | np.number) or not 0 <= value <= 1:
        raise SettingsError(f"{where}: expected a number from 0 to 1, found {value!r}")
    return float(value)


def one_of(where: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Raise SettingsError unless a value is allowed."""
    if value not in allowed:
        raise SettingsError(
            f"{where}: expected one of {', '.join(map(repr, allowed))}, found {value!r}"
        )


def below(rng: np.random.Generator, limits: Any) -> NDArray[np.int64]:
    """Draw a whole number from 0 to each limit, inclusive."""
    limits = np.asarray(limits, np.int64)
    return rng.integers(0, limits, endpoint=True)
