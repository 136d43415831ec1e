"""Gradient of one shard or of several, with loss, counts and seconds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.codec import add_rounded
from daskdl.collective.payload import Payload
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.arithmetic import added, copied
from daskdl.predict.measures import Measured
from daskdl.rows import Rows


class Clocks(NamedTuple):
    """Seconds of a shard's gradient, or of several.

    ``data``, ``forward`` and ``backward`` are sums over the shards; ``longest`` is the slowest
    shard's sum of all three.
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
        """Return the seconds of both together."""
        return Clocks(
            self.data + other.data,
            self.forward + other.forward,
            self.backward + other.backward,
            max(self.longest, other.longest),
            self.shards + other.shards,
        )

    def means(self, workers: int | None = None) -> dict[str, float]:
        """Return data, forward, backward and idle of the mean worker; idle is its wait for others.

        Each of ``workers`` computed some shards in turn; without them every shard had its own
        worker.
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


Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Gradient:
    """A shard's gradient times its number of samples, or a sum of such gradients.

    ``vector`` float32 (n + m,) has the parameters, then the values of buffers. ``rows`` belong to
    the tables that are trained by rows. ``loss`` is the sum over all samples; ``measured`` has each
    shard's statistics of metrics.
    """

    vector: Vector = field(repr=False)
    loss: float
    samples: int
    seconds: Clocks
    rows: tuple[Rows, ...] = field(default=(), repr=False)
    measured: tuple[Measured, ...] = field(default=(), repr=False)

    def __sizeof__(self) -> int:
        return self.vector.nbytes + sum(rows.nbytes for rows in self.rows)

    def payload(self) -> Payload:
        """Return the payload for a reduction, without ``measured``."""
        of = self.seconds
        sums = (self.loss, self.samples, of.data, of.forward, of.backward, of.shards)
        return Payload(self.vector, self.rows, sums, (of.longest,))

    @classmethod
    def of_payload(cls, payload: Payload) -> Gradient:
        """Undo :meth:`payload`."""
        loss, samples, data, forward, backward, shards = payload.sums
        clocks = Clocks(data, forward, backward, payload.maxima[0], int(shards))
        return cls(payload.vector, loss, int(samples), clocks, payload.rows)


def add(a: Gradient, b: Gradient, rounded: int = 0, threads: int = 1) -> Gradient:
    """Return the sum of two gradients; the first ``rounded`` numbers are rounded to bfloat16."""
    with thread_budget(threads):
        if rounded:
            vector = add_rounded(copied(a.vector), b.vector, rounded)
        else:
            vector = added(a.vector, b.vector)
    rows = tuple(one + other for one, other in zip(a.rows, b.rows, strict=True))
    return Gradient(
        vector,
        a.loss + b.loss,
        a.samples + b.samples,
        a.seconds.plus(b.seconds),
        rows,
        a.measured + b.measured,
    )


def total_of(parts: Sequence[Gradient], rounded: int, threads: int) -> Gradient:
    """Return the sum of the tree's last operands, one or two."""
    total = parts[0]
    for part in parts[1:]:
        total = add(total, part, rounded, threads)
    return total
