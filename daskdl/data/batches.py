"""Batches: which samples of which shard make up an iteration; each sample once per epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from daskdl.data.random import generator
from daskdl.errors import DataError, SettingsError

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Share:
    """Shares of an iteration: shard s gives ``counts[s]`` samples from ``starts[s]`` on."""

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

    Sample ``k`` of a shard of ``n`` stands at ``(k + u) / n`` of the epoch, where ``u`` from 0 to 1
    is drawn for each shard anew in each epoch. All samples in this order, cut into batches, give
    each batch exactly ``batch_size`` samples (the last of an epoch may be shorter) and each shard
    its share of it to within about one; where there are more shards than samples in a batch, others
    meet in every epoch. Which sample is the shard's k-th is a permutation drawn anew in each epoch
    too, see :meth:`Partition.order`. So any sample may meet any other of all shards, as if all were
    mixed with each other, but that shards have equal loads and no sample has to move.

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
        """Return the fewest samples that a shard has in a batch of the first epoch, 0 left out."""
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
    """Return the owner of each place in a row in which all owners' samples are spread evenly.

    The phase of an owner, 1/2 by default, is how far its first sample stands from the beginning, as
    a part of the distance to its next.
    """
    # Quotients of equal value are equal floats (division rounds correctly), and different ones
    # stay apart up to shards of some 10 million samples, so that this order is exact.
    both = zip_longest(lengths, phases, fillvalue=0.5)
    keys = np.concatenate([(np.arange(n) + phase) / n for n, phase in both if n])
    owners = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    return owners[np.argsort(keys, kind="stable")]
