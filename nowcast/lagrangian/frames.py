"""Frames that a method looks at, some minutes apart, and their rain in decibels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Minutes between the frames. Chosen over all sources of docs/measurements/forecast.md: nearer
#: frames show noise and rounding, farther ones less of the same rain.
BASELINE = 10.0
#: Frames that are looked at.
FRAMES = 3


def apart(ages: Sequence[float], most: int, baseline: float | None) -> list[int]:
    """Return the positions of the frames that a method looks at, oldest first.

    The last one, and those nearest to one baseline before it, to two and so on.

    - ``ages``: minutes of each frame before any one time, falling.
    - ``baseline``: minutes; None takes the last frames.

    Examples
    --------
    >>> apart([25, 20, 15, 10, 5, 0], 3, 10.0)
    [1, 3, 5]
    >>> apart([30, 15, 0], 3, 10.0)
    [0, 1, 2]
    """
    if baseline is None:
        return list(range(len(ages)))[-most:]
    chosen = [len(ages) - 1]
    for count in range(1, most):
        wanted = ages[-1] + count * baseline
        older = range(chosen[0])
        if not older:
            break
        chosen.insert(0, min(older, key=lambda k: (abs(ages[k] - wanted), -k)))
    return chosen


def frames_back(step_minutes: float, most: int = FRAMES, baseline: float | None = BASELINE) -> int:
    """Return how many frames, one step apart, have those that `apart` chooses.

    Examples
    --------
    >>> [frames_back(minutes) for minutes in (2, 5, 10, 15)]
    [11, 5, 3, 3]
    """
    return most if baseline is None else 1 + (most - 1) * max(1, round(baseline / step_minutes))


#: Rain rate in mm h-1 below which a pixel is dry.
DRY_BELOW = 0.1
#: Decibels (10 log10 of mm h-1) of a dry pixel: a step of 5 dB to the lightest rain.
DRY_DECIBEL = -15.0
#: Rain rate in mm h-1 above which it is hail, or a fault, and says no more about what comes.
MOST = 200.0


def to_decibel(rain: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 10 log10 of rain rates in mm h-1; `DRY_DECIBEL` where dry, NaN where missing."""
    floor = np.float32(DRY_BELOW)
    decibel = 10 * np.log10(np.clip(rain, floor, np.float32(MOST)))
    return np.where(rain < floor, np.float32(DRY_DECIBEL), decibel)
