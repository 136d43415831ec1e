"""Rules of sums of rain over windows of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.errors import SettingsError

MINUTE = np.timedelta64(1, "m")


@dataclass(frozen=True)
class Rules:
    """Rules of sums: windows, amounts, gaps, and when a sum is missing."""

    over: tuple[np.timedelta64, ...]  #: Lengths of windows, increasing.
    #: From the end of a window to the next end; a divisor of each length.
    every: np.timedelta64
    amounts: tuple[float, ...]  #: mm to give ensembles' probabilities of.
    bridge: np.timedelta64  #: Longest time between two frames along which rain is moved.
    observed: float  #: Least share of a window that is observed, else its sum is missing.

    @classmethod
    def of(
        cls,
        over: str | Iterable[Any],
        every: Any = None,
        amounts: Iterable[float] = (),
        bridge: Any = "30min",
        observed: float = 0.9,
    ) -> Rules:
        """Check and return rules; times are what ``pandas.Timedelta`` reads, such as ``"1h"``."""
        lengths = over.split(",") if isinstance(over, str) else over
        windows = tuple(sorted({_duration("over", length) for length in lengths}))
        if not windows:
            raise SettingsError("over: expected a window such as 1h, found none")
        usual = min(windows[0], np.timedelta64(1, "h").astype("timedelta64[ns]"))
        step = usual if every is None else _duration("every", every)
        for window in windows:
            if window % step:
                raise SettingsError(
                    f"every: expected a divisor of {length_text(window)}, found "
                    f"{length_text(step)}; give a step that all windows are multiples of"
                )
        if not 0 < observed <= 1:
            raise SettingsError(f"observed: expected a share above 0, up to 1, found {observed!r}")
        reached = tuple(sorted(amounts))
        if any(not amount > 0 for amount in reached):
            raise SettingsError(f"amounts: expected mm above 0, found {reached[0]!r}")
        return cls(windows, step, reached, _duration("bridge", bridge), observed)


def _duration(option: str, value: Any) -> np.timedelta64:
    import pandas as pd

    try:
        length = pd.Timedelta(value).to_timedelta64().astype("timedelta64[ns]")
    except (ValueError, TypeError, AttributeError):  # which "nan" raises
        length = np.timedelta64("NaT")
    if np.isnat(length) or length < MINUTE:
        raise SettingsError(
            f"{option}: expected a time of a minute or more such as 1h, found {value!r}"
        )
    return length


def length_text(length: np.timedelta64) -> str:
    """Return a length of time such as ``"1h"`` or ``"30min"``."""
    minutes = length / MINUTE
    return f"{minutes / 60:g}h" if minutes >= 60 else f"{minutes:g}min"
