"""BlockPartition: a partition larger than memory, read block by block ahead of need."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from daskdl.data.batches import generator
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.data.ragged import concatenated
from daskdl.data.recipe import Recipe

#: Blocks that are mixed with each other: as many again are being read meanwhile.
MIXED = 4


class BlockPartition(Partition):
    """A partition that holds the blocks it draws from, and the next ones.

    Each epoch draws an order of blocks; :data:`MIXED` blocks at a time are mixed. While samples are
    drawn from them, the next ones are read.

    ``dealt`` returns the blocks of an epoch, with the same number of samples, from (seed, epoch);
    positions then count in the blocks of the epoch drawn last.
    """

    def __init__(
        self,
        blocks: Sequence[Recipe],
        dealt: Callable[[int, int], Sequence[Recipe]] | None = None,
    ) -> None:
        self._arguments, self._dealt = (tuple(blocks), dealt), dealt
        self._lock = threading.Lock()
        self._reader: ThreadPoolExecutor | None = None
        self._held: dict[int, Future[Partition]] = {}
        self._epoch: tuple[int, ...] | None = None
        self._begin(blocks)

    def _begin(self, blocks: Sequence[Recipe]) -> None:
        for future in self._held.values():
            future.cancel()
        self._held.clear()
        self._blocks = tuple(blocks)
        self._ends = np.cumsum([len(block) for block in blocks])
        self._coming = np.arange(len(self._blocks))  # as they lie, until an epoch is drawn
        self._order: Indices = np.arange(len(self))

    def __getstate__(self) -> tuple[Any, ...]:
        return self._arguments  # nothing of what it holds has to move with it

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    @property
    def nbytes(self) -> int:
        """Bytes in memory now."""
        loaded = [future for future in list(self._held.values()) if future.done()]
        return sum(f.result().nbytes for f in loaded if f.exception() is None)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def order(self, seed: int, epoch: int, shard: int) -> Indices:
        """Return all positions in the order of an epoch, int64 (n,)."""
        with self._lock:
            if self._epoch != (seed, epoch, shard):
                draw = generator(seed, "order", epoch, shard)
                if self._dealt is None:
                    self._coming = draw.permutation(len(self._blocks))
                else:
                    self._begin(self._dealt(seed, epoch))
                first = np.concatenate([[0], self._ends[:-1]])
                self._order = np.concatenate(
                    [
                        draw.permutation(
                            np.concatenate([np.arange(first[b], self._ends[b]) for b in some])
                        )
                        for some in _mixed(self._coming)
                    ]
                )
                self._epoch = seed, epoch, shard
            return self._order

    def take(self, indices: Indices) -> Batch:
        """Return the samples at these positions; missing blocks are read."""
        with self._lock:
            place = np.argsort(self._coming)  # of each block in the order in which they come
            owner = np.searchsorted(self._ends, indices, side="right")
            columns: dict[str, list[Any]] = {}
            by_need = sorted(np.unique(owner), key=place.__getitem__)
            where = [np.flatnonzero(owner == b) for b in by_need]
            for b, some in zip(by_need or [0], where or [np.arange(0)], strict=True):
                first = self._ends[b] - len(self._blocks[b])
                partition = self._block(int(b), int(place[b]) // MIXED)
                for name, values in partition.take(indices[some] - first).items():
                    columns.setdefault(name, []).append(values)
            back = np.argsort(np.concatenate(where)) if where else np.arange(0)
            return {name: concatenated(column)[back] for name, column in columns.items()}

    def _block(self, block: int, group: int) -> Partition:
        """Return a loaded block; free the blocks before its group, and read the next ones ahead."""
        if self._reader is None:
            self._reader = ThreadPoolExecutor(1, thread_name_prefix="daskdl-read")
        near = self._coming[group * MIXED : (group + 2) * MIXED].tolist()
        for b in [b for b in self._held if b not in near]:
            self._held.pop(b).cancel()
        for b in near:
            if b not in self._held:
                self._held[b] = self._reader.submit(self._blocks[b].load)
        try:
            return self._held[block].result()
        except BaseException:
            self._held.pop(block, None)  # the next one who asks tries again
            raise


def _mixed(coming: Indices) -> Iterator[Indices]:
    for start in range(0, len(coming), MIXED):
        yield coming[start : start + MIXED]
