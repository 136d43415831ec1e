"""Batches: which samples of which shard make up an iteration; each sample once per epoch.

The random numbers that decide it are the same on any worker and at any time.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Share:
    """Parts of an iteration: shard s gives ``counts[s]`` samples from ``starts[s]`` on."""

    epoch: int
    iteration: int  # within the epoch
    starts: Indices
    counts: Indices

    @property
    def samples(self) -> int:
        """Samples of the batch."""
        return int(self.counts.sum())


class Batches:
    """The batches of every epoch, a function of the seed, the shards' lengths and the batch size.

    Sample ``k`` of a shard of ``n`` has the place ``(k + u) / n`` in the epoch; ``u`` from 0 to 1
    is drawn anew for each shard and epoch. All samples in the order of their places are cut into
    batches of ``batch_size`` (the last one of an epoch may be shorter). Each shard has its share of
    a batch to within about one; if there are more shards than samples in a batch, others meet in
    every epoch. A permutation, also drawn anew in each epoch, says which sample is the shard's
    k-th, see :meth:`Partition.order`. So any samples of all shards may meet, as if all were mixed,
    but shards have equal loads and no sample moves.

    Parameters
    ----------
    lengths : sequence of int
        Samples of each shard.
    batch_size : int
    seed : int

    Examples
    --------
    >>> batches = Batches([10, 6], batch_size=4)
    >>> len(batches)
    4
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int = 0) -> None:
        if not isinstance(batch_size, int | np.integer):
            raise SettingsError(f"batch_size: expected a whole number, found {batch_size!r}")
        if batch_size < 1:
            raise SettingsError(f"batch_size: expected at least 1, found {batch_size!r}")
        self.lengths, self.batch_size = tuple(map(int, lengths)), int(batch_size)
        self.samples = sum(self.lengths)
        if not self.samples:
            raise DataError(
                f"batches: expected samples, found shards of {self.lengths}"
                "; look at the source and at filters"
            )
        self._seed = seed
        self._epoch: tuple[int, NDArray[np.int32]] | None = None

    def __len__(self) -> int:
        """Return the iterations of an epoch."""
        return -(-self.samples // self.batch_size)

    def shares(self, epoch: int, first: int, last: int) -> Iterator[Share]:
        """Yield the shares of iterations ``first`` up to ``last`` of an epoch."""
        n, owners = len(self.lengths), self._owners(epoch)
        starts = np.bincount(owners[: first * self.batch_size], minlength=n)
        for iteration in range(first, last):
            begin = iteration * self.batch_size
            counts = np.bincount(owners[begin : begin + self.batch_size], minlength=n)
            yield Share(epoch, iteration, starts, counts)
            starts = starts + counts

    def least_share(self) -> int:
        """Return the fewest samples above 0 that a shard has in a batch of the first epoch."""
        n, owners = len(self.lengths), self._owners(0).astype(np.int64)
        counts = np.bincount(np.arange(len(owners)) // self.batch_size * n + owners)
        return int(counts[counts > 0].min())

    def _owners(self, epoch: int) -> NDArray[np.int32]:
        if self._epoch is None or self._epoch[0] != epoch:
            phases = generator(self._seed, "phases", epoch).random(len(self.lengths))
            self._epoch = epoch, interleaved(self.lengths, phases)
        return self._epoch[1]


def interleaved(
    lengths: Sequence[int], phases: Sequence[float] | NDArray[np.float64] = ()
) -> NDArray[np.int32]:
    """Return the owner of each place in a row that spreads all owners' samples evenly.

    An owner's phase, 1/2 by default, is the place of its first sample, as a share of the distance
    to its next one.
    """
    # Quotients of equal value are equal floats (division rounds correctly), and different ones
    # stay apart up to shards of some 10 million samples, so that this order is exact.
    both = zip_longest(lengths, phases, fillvalue=0.5)
    keys = np.concatenate([(np.arange(n) + phase) / n for n, phase in both if n])
    owners = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    return owners[np.argsort(keys, kind="stable")]


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """Return the Generator of one draw of a run, by its seed, at least 0.

    Draws for different purposes are independent; so are draws of one purpose with different
    numbers, such as (epoch, iteration, shard). A negative number counts as its two's complement in
    64 bits.
    """
    if seed < 0:
        raise SettingsError(f"seed: expected at least 0, found {seed!r}")
    # SeedSequence pads with zeros: the count keeps (1,) and (1, 0) apart.
    entropy = [seed, zlib.crc32(purpose.encode()), len(numbers)]
    return np.random.default_rng(entropy + [n % 2**64 for n in numbers])


@lru_cache(maxsize=32)
def permutation(seed: int, epoch: int, shard: int, length: int) -> NDArray[np.int64]:
    """Return the order of a shard's samples in an epoch, int64 (length,); it is read-only."""
    order = generator(seed, "order", epoch, shard).permutation(length)
    order.flags.writeable = False
    return order


@lru_cache(maxsize=32)
def weighted(weights: bytes, n: int, seed: int, epoch: int, shard: int) -> NDArray[np.int64]:
    """Return n draws of an epoch by float64 weights, in a random order; they are read-only.

    Each index occurs n times its share of all weights, to within one.
    """
    draw, values = generator(seed, "weights", epoch, shard), np.frombuffer(weights)
    mixed = draw.permutation(len(values))
    ends = np.cumsum(values[mixed])
    at = np.searchsorted(ends / ends[-1] * n, np.arange(n) + draw.random(), side="right")
    result = draw.permutation(mixed[np.minimum(at, len(mixed) - 1)])
    result.flags.writeable = False
    return result
