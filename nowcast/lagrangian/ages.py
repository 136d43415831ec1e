"""The choice of frames that motion and tendency are measured on: so many minutes apart."""

from __future__ import annotations

from collections.abc import Sequence

#: Minutes between the frames. Chosen over all sources of docs/measurements/forecast.md: nearer
#: frames show noise and rounding, farther ones less of the same rain.
BASELINE = 10.0
#: Frames that are looked at.
FRAMES = 3


def apart(ages: Sequence[float], most: int, baseline: float | None) -> list[int]:
    """Return the positions of the frames that a method looks at, oldest first.

    The last one, and those nearest to one baseline before it, to two and so on.

    Parameters
    ----------
    ages : sequence of float
        Minutes of each frame before any one time, falling.
    most : int
        Number of frames.
    baseline : float, optional
        Minutes; None takes the last frames.

    Examples
    --------
    >>> apart([25, 20, 15, 10, 5, 0], 3, 10.0)
    [1, 3, 5]
    >>> apart([30, 15, 0], 3, 10.0)
    [0, 1, 2]
    """
    if baseline is None:
        return list(range(len(ages)))[-most:]
    kept = [len(ages) - 1]
    for count in range(1, most):
        wanted = ages[-1] + count * baseline
        older = range(kept[0])
        if not older:
            break
        kept.insert(0, min(older, key=lambda k: (abs(ages[k] - wanted), -k)))
    return kept


def frames_back(step_minutes: float, most: int = FRAMES, baseline: float | None = BASELINE) -> int:
    """Return how many frames, one step apart, have those that `apart` chooses.

    Examples
    --------
    >>> [frames_back(minutes) for minutes in (2, 5, 10, 15)]
    [11, 5, 3, 3]
    """
    return most if baseline is None else 1 + (most - 1) * max(1, round(baseline / step_minutes))
