"""Ahead: a shard's next batch is drawn while the gradient of the current one is computed."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from daskdl.data.batches import Share
from daskdl.data.functions import take
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.train.engines.job import Job

#: Of one shard: (iteration of the run, epoch, iteration in it), first position, and how many.
Place = tuple[tuple[int, int, int], int, int]


def place_of(iteration: int, share: Share, shard: int) -> Place:
    """Return the place of a shard's samples in an iteration of the run."""
    at = iteration, share.epoch, share.iteration
    return at, int(share.starts[shard]), int(share.counts[shard])


def drawn(job: Job, partition: Partition, shard: int, place: Place) -> tuple[Indices, Batch]:
    """Return the positions of a shard's samples in one iteration, and the samples."""
    (_, epoch, iteration), start, count = place
    chosen = partition.order(job.seed, epoch, shard)[start : start + count]
    draw = (job.seed, "map", epoch, iteration, shard)
    return chosen, take(partition, chosen, job.tools().functions, draw)


class Ahead:
    """Draws the batches of some shards; each shard's next batch is drawn in another thread.

    The batches are the same, since they follow from the seed and the place. Samples without
    functions are drawn when they are needed, since a thread would not save time. ``threads`` is the
    number of shards that work at once.
    """

    def __init__(self, job: Job, threads: int) -> None:
        self._job, self._threads = job, threads
        self._pool: ThreadPoolExecutor | None = None
        self._next: dict[int, tuple[Place, Future[tuple[Indices, Batch]]]] = {}

    def draw(
        self, partition: Partition, shard: int, place: Place, following: Place | None
    ) -> tuple[Indices, Batch]:
        """Return a batch as :func:`drawn` does, and begin to draw ``following`` if it is known."""
        ready, future = self._next.pop(shard, (None, None))
        if future is not None and ready == place:
            draw = future.result()
        else:
            draw = drawn(self._job, partition, shard, place)
        if following is not None and self._job.tools().functions:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, "daskdl-ahead")
            # Not before: a partition gives the samples of one batch after another.
            work = self._pool.submit(self._work, partition, shard, following)
            self._next[shard] = following, work
        return draw

    def close(self) -> None:
        """Release batches that are not needed."""
        self._next.clear()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _work(self, *arguments: Any) -> tuple[Indices, Batch]:
        with thread_budget(self._job.threads):
            return drawn(self._job, *arguments)
