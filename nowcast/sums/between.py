"""Rain between two frames: both are moved along the motion, so that sums have no stripes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from nowcast.lagrangian.advection import carry, origins
from nowcast.lagrangian.frames import BASELINE, FRAMES, apart
from nowcast.lagrangian.motion import motion_field

Float = NDArray[np.float32]

#: Most places between two frames at which rain is laid down.
MOST = 48


def mean_between(
    earlier: Float, later: Float, motion: Float, begin: float, end: float
) -> tuple[Float, Float]:
    """Return the mean rain in a part of the time between two frames, and its known fraction.

    At each instant, both frames are moved along the motion and averaged with weights by nearness in
    time; where one is missing or comes from outside the grid, the other is used. Between instants
    rain moves by at most one cell.

    - ``earlier``, ``later`` (field, y, x): rain rates in mm h-1, NaN where missing; fields are
      members of an ensemble. Results have the same shape: the rain, where missing counts as
      0, and the known fraction.
    - ``motion`` (2, y, x): displacement in cells from one frame to the other.
    - ``begin``, ``end``: the part, 0 at the earlier frame and 1 at the later one.
    """
    fields = [(a, b) for a, b in zip(earlier, later, strict=True)]
    dry = not ((earlier > 0).any() or (later > 0).any())
    way = 0.0 if dry else float(np.hypot(*motion).max()) * (end - begin)
    count = int(np.clip(np.ceil(way), 1, MOST))
    mean, known = np.zeros_like(earlier), np.zeros_like(earlier)
    for k in range(count):
        at = begin + (k + 0.5) / count * (end - begin)
        back, ahead = (None, None) if dry else (origins(motion, at), origins(-motion, 1 - at))
        for n, (first, last) in enumerate(fields):
            a = first if back is None else carry(first, back)
            b = last if ahead is None else carry(last, ahead)
            here = a + np.float32(at) * (b - a)
            here = np.where(np.isnan(a), b, np.where(np.isnan(b), a, here))
            finite = np.isfinite(here)
            known[n] += finite
            mean[n] += np.where(finite, here, 0)
    return mean / np.float32(count), known / np.float32(count)


def motion_between(
    read: Callable[[int], Float],
    minutes: Sequence[float],
    position: int,
    first: int,
    spacing_km: float,
) -> Float:
    """Return the motion (2, y, x) from a frame to the next, in cells, as forecasts measure it.

    ``read`` gives the frame (y, x) at a position, ``minutes`` are the times of all; ``position``
    is the earlier frame's, and ``first`` the earliest frame's that may be read: no gap lies
    between.
    """
    last = position + 1
    step = minutes[last] - minutes[position]
    usable = [
        k for k in range(first, last + 1)
        if k >= position or minutes[last] - minutes[k] <= FRAMES * BASELINE
    ]  # fmt: skip
    ages = [minutes[last] - minutes[k] for k in usable]
    chosen = apart(ages, FRAMES, BASELINE)
    frames = np.stack([read(usable[k]) for k in chosen])
    if not (frames > 0).any():
        return np.zeros((2, *frames.shape[1:]), np.float32)
    return motion_field(
        frames, spacing_km=spacing_km, step_minutes=step, ages=[ages[k] / step for k in chosen]
    )
