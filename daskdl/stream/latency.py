"""Latencies: a histogram that adds up over workers, in steps of a tenth."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

#: Upper edges of all buckets but the last (ms): from 0.1 ms to a day, each a tenth above the last.
EDGES = 0.1 * 1.1 ** np.arange(int(np.ceil(np.log(864e6) / np.log(1.1))) + 1)


class Histogram:
    """A histogram of the time that messages took.

    Attributes
    ----------
    counts : int64 (len(EDGES) + 1,)
    """

    def __init__(self, counts: Iterable[tuple[int, int]] = ()) -> None:
        self.counts: NDArray[np.int64] = np.zeros(len(EDGES) + 1, np.int64)
        self.total = 0.0
        for bucket, count in counts:
            self.counts[bucket] += count

    def add(self, milliseconds: NDArray[np.float64]) -> None:
        """Count latencies (n,) in ms; a clock that runs behind the broker's counts as none."""
        clipped = np.maximum(milliseconds, 0.0)
        buckets = np.searchsorted(EDGES, clipped)
        self.counts += np.bincount(buckets, minlength=len(self.counts))
        self.total += float(clipped.sum())

    def sparse(self) -> list[tuple[int, int]]:
        """Return (bucket, count) of those that are not empty: what is sent."""
        return [(int(i), int(self.counts[i])) for i in np.flatnonzero(self.counts)]

    def percentiles(self, *wanted: float) -> list[float]:
        """Return the latencies (ms) below which so many of a hundred are; NaN of none.

        They are the upper edges of their buckets, too high by a tenth at the most.
        """
        total = int(self.counts.sum())
        if not total:
            return [float("nan")] * len(wanted)
        places = np.searchsorted(self.counts.cumsum(), np.ceil(np.array(wanted) / 100 * total))
        return [float(EDGES[min(place, len(EDGES) - 1)]) for place in places]
