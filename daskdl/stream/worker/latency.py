"""Latency: a histogram that adds up over workers, and the batch size that keeps it low."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

#: Upper edges of all buckets but the last (ms): from 0.1 ms to a day, each a tenth above the last.
EDGES = 0.1 * 1.1 ** np.arange(int(np.ceil(np.log(864e6) / np.log(1.1))) + 1)


class Histogram:
    """A histogram of messages' latencies.

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
        """Count latencies (n,) in ms; negative ones, of clocks behind the broker's, count as 0."""
        clipped = np.maximum(milliseconds, 0.0)
        buckets = np.searchsorted(EDGES, clipped)
        self.counts += np.bincount(buckets, minlength=len(self.counts))
        self.total += float(clipped.sum())

    def sparse(self) -> list[tuple[int, int]]:
        """Return (bucket, count) of the buckets that are not empty, to send them."""
        return [(int(i), int(self.counts[i])) for i in np.flatnonzero(self.counts)]

    def percentiles(self, *wanted: float) -> list[float]:
        """Return percentiles of the latencies in ms; NaN without messages.

        They are upper edges of buckets, at most a tenth too high.
        """
        total = int(self.counts.sum())
        if not total:
            return [float("nan")] * len(wanted)
        places = np.searchsorted(self.counts.cumsum(), np.ceil(np.array(wanted) / 100 * total))
        return [float(EDGES[min(place, len(EDGES) - 1)]) for place in places]


class BatchLimit:
    """The most records that the next batch may have, never more than ``largest``.

    It begins small, at most doubles from batch to batch, and follows the measured speed, so that a
    batch takes about ``seconds``. So a slow model gets small batches, and no answer waits long for
    others; a fast one gets large batches, with fewer calls and transactions.
    """

    def __init__(self, largest: int, seconds: float) -> None:
        self._largest, self._seconds = largest, seconds
        self.limit = min(32, largest)

    def worked(self, records: int, seconds: float) -> None:
        """Learn from the seconds of a batch.

        Small batches say little about large ones, since fixed costs dominate them.
        """
        if records < self.limit // 2 or not records:
            return
        fitting = int(records * self._seconds / max(seconds, 1e-6))
        self.limit = max(1, min(fitting, 2 * self.limit, self._largest))
