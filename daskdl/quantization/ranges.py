"""Ranges: the numbers that a layer's bytes stand for, from what was seen of its inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.int8.scale import HIGHEST

Counts = NDArray[Any]

#: Ways to choose a range: all that was seen; what is left without the rarest; what has the least
#: mean square of roundings and of what is cut off; each row's own.
WAYS = ("extremes", "percentile", "error", "dynamic")
#: Share of the numbers that a percentile leaves out, at both ends together.
OUTSIDE = 1e-4
#: Parts of the whole range that are tried.
PARTS = np.geomspace(0.01, 1.0, 121)


def percentile(counts: Counts, low: float, high: float) -> tuple[float, float]:
    """Return the range without the rarest numbers at both ends, by the counts of its cells."""
    edges = np.linspace(low, high, len(counts) + 1)
    below = np.cumsum(counts) / max(1.0, counts.sum())
    first = int(np.searchsorted(below, OUTSIDE / 2, side="right"))
    last = int(np.searchsorted(below, 1 - OUTSIDE / 2, side="left"))
    return float(edges[min(first, last)]), float(edges[min(last + 1, len(counts))])


def least_error(counts: Counts, low: float, high: float) -> tuple[float, float]:
    """Return the part of the range, of the same share at both ends, that has the least error.

    A rounding's mean square is a twelfth of the step's; what is cut off has its distance's.
    """
    edges = np.linspace(low, high, len(counts) + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    errors = []
    for part in PARTS:
        bottom, top = min(low, 0.0) * part, max(high, 0.0) * part
        cut = middles - np.clip(middles, bottom, top)
        step = (top - bottom) / HIGHEST
        errors.append((counts * np.where(cut == 0, step**2 / 12, cut**2)).sum())
    best = PARTS[int(np.argmin(errors))]
    return min(low, 0.0) * best, max(high, 0.0) * best
