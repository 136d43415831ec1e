"""Clocks: how long shards computed their gradients, added up as these are."""

from __future__ import annotations

import time
from typing import NamedTuple


class Clocks(NamedTuple):
    """Seconds of a shard's gradient, or of several.

    Attributes
    ----------
    data, forward, backward : float
        Of all shards together.
    longest : float
        That one of them took in all three.
    shards : int
    """

    data: float
    forward: float
    backward: float
    longest: float
    shards: int

    @classmethod
    def of(cls, data: float, forward: float, backward: float) -> Clocks:
        """Return the seconds of one shard."""
        return cls(data, forward, backward, data + forward + backward, 1)

    def plus(self, other: Clocks) -> Clocks:
        """Return the seconds of the shards of both."""
        return Clocks(
            self.data + other.data,
            self.forward + other.forward,
            self.backward + other.backward,
            max(self.longest, other.longest),
            self.shards + other.shards,
        )

    def means(self, workers: int | None = None) -> dict[str, float]:
        """Return data, forward and backward of the mean worker; idle is what it waits for others.

        Parameters
        ----------
        workers : int, optional
            Who computed the shards, each some in turn; without it, every shard had its own.
        """
        workers = min(workers or self.shards, self.shards)
        data, forward, backward = (t / workers for t in self[:3])
        idle = max(0.0, self.longest - sum(self[:3]) / self.shards)
        return {"data": data, "forward": forward, "backward": backward, "idle": idle}


class Stopwatch:
    """Seconds from one lap to the next."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def lap(self) -> float:
        """Return the seconds since the last lap."""
        before, self._last = self._last, time.perf_counter()
        return self._last - before
