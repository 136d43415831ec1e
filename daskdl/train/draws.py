"""Draws: the samples that shards give to the iterations of a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from daskdl.data.batches import Share


class Draw(NamedTuple):
    """Samples that some shards give to one iteration: (start, count) of each."""

    epoch: int
    iteration: int  # within the epoch
    shards: tuple[tuple[int, int], ...]


class Draws(NamedTuple):
    """Samples that some shards give to the iterations of a group, which follow each other."""

    epoch: int
    iteration: int  # of the first, within the epoch
    starts: tuple[int, ...]  # of each shard
    counts: tuple[tuple[int, ...], ...]  # of each shard, in every iteration

    def each(self) -> Iterator[Draw]:
        """Yield the samples of each iteration."""
        starts = list(self.starts)
        for i, counts in enumerate(zip(*self.counts, strict=True)):
            yield Draw(self.epoch, self.iteration + i, tuple(zip(starts, counts, strict=True)))
            starts = [start + count for start, count in zip(starts, counts, strict=True)]


def draws_of(shares: Sequence[Share], shards: Sequence[int]) -> Draws:
    """Return the samples that these shards give to iterations that follow each other."""
    first = shares[0]
    starts = tuple(int(first.starts[s]) for s in shards)
    counts = tuple(tuple(int(share.counts[s]) for share in shares) for s in shards)
    return Draws(first.epoch, first.iteration, starts, counts)


def note_of(shares: Sequence[Share]) -> list[Any]:
    """Return the samples of all shards as plain data, to send them."""
    starts = np.asarray(shares[0].starts, np.int64)
    counts = np.asarray([share.counts for share in shares], np.int32)
    return [shares[0].epoch, shares[0].iteration, starts.tobytes(), counts.tobytes()]


def noted(note: Sequence[Any]) -> list[Share]:
    """Return the shares of which :func:`note_of` made a note."""
    epoch, iteration, starts, counts = note
    start = np.frombuffer(starts, np.int64)
    shares = []
    for i, count in enumerate(np.frombuffer(counts, np.int32).reshape(-1, start.size)):
        shares.append(Share(epoch, iteration + i, start, count.astype(np.int64)))
        start = start + count
    return shares
