"""Batches: which samples of which shard make up an iteration; each sample once per epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from daskdl.data.partition import Partition
from daskdl.data.random import generator
from daskdl.errors import DataError, SettingsError

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Share:
    """What every shard gives to one iteration: ``counts[s]`` positions from ``starts[s]`` on."""

    epoch: int
    iteration: int  # within the epoch
    starts: Indices
    counts: Indices

    @property
    def samples(self) -> int:
        """Samples of the batch."""
        return int(self.counts.sum())


class Batches:
    """The batches of every epoch, a function of the shards' lengths and the batch size alone.

    Sample ``k`` of a shard of ``n`` stands at ``(k + 1/2) / n`` of the epoch; all samples in this
    order (ties by shard), cut into batches, give each batch exactly ``batch_size`` samples (the
    last of an epoch may be shorter) and each shard its share of it to within about one. Which
    sample is the shard's k-th is a permutation drawn anew in each epoch, see :func:`positions`.

    Parameters
    ----------
    lengths : sequence of int
        Samples of each shard.
    batch_size : int
    """

    def __init__(self, lengths: Sequence[int], batch_size: int) -> None:
        if not isinstance(batch_size, int | np.integer):
            raise SettingsError(f"batch_size: expected a whole number, found {batch_size!r}")
        if batch_size < 1:
            raise SettingsError(f"batch_size: expected at least 1, found {batch_size!r}")
        self.lengths, self.batch_size = tuple(map(int, lengths)), int(batch_size)
        self.samples = sum(self.lengths)
        if not self.samples:
            raise DataError(f"batches: expected samples, found shards of {self.lengths}")
        self._owners = interleaved(self.lengths)

    def __len__(self) -> int:
        """Return the iterations of an epoch."""
        return -(-self.samples // self.batch_size)

    def shares(self, epoch: int, first: int, last: int) -> Iterator[Share]:
        """Yield what iterations ``first`` up to ``last`` of an epoch draw from every shard."""
        n = len(self.lengths)
        starts = np.bincount(self._owners[: first * self.batch_size], minlength=n)
        for iteration in range(first, last):
            begin = iteration * self.batch_size
            counts = np.bincount(self._owners[begin : begin + self.batch_size], minlength=n)
            yield Share(epoch, iteration, starts, counts)
            starts = starts + counts


def interleaved(lengths: Sequence[int]) -> NDArray[np.int32]:
    """Return the owner of each place in a row in which all owners' samples are spread evenly."""
    # Quotients of equal value are equal floats (division rounds correctly), and different ones
    # stay apart up to shards of some 10 million samples, so that this order is exact.
    keys = np.concatenate([(2 * np.arange(n) + 1) / (2 * n) for n in lengths if n])
    owners = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    return owners[np.argsort(keys, kind="stable")]


def positions(seed: int, epoch: int, shard: int, length: int, start: int, count: int) -> Indices:
    """Return which samples are the ``start``-th and following of a shard in an epoch.

    Parameters
    ----------
    seed, epoch, shard : int
        Of the permutation.
    length : int
        Samples of the shard.
    start, count : int
        Part of the permutation.

    Returns
    -------
    int64 (count,)
    """
    return _permutation(seed, epoch, shard, length)[start : start + count]


def drawn(
    partition: Partition, seed: int, epoch: int, shard: int, start: int, count: int
) -> Indices:
    """Return :func:`positions` of a partition, or those of the order it has of its own."""
    order = getattr(partition, "order", None)
    if order is None:
        return positions(seed, epoch, shard, len(partition), start, count)
    return order(seed, epoch, shard)[start : start + count]


@lru_cache(maxsize=32)
def _permutation(seed: int, epoch: int, shard: int, length: int) -> Indices:
    order = generator(seed, "order", epoch, shard).permutation(length)
    order.flags.writeable = False
    return order
