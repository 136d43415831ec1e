"""Parted: rows in memory or in the chunks of a dask Array, searched in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from daskdl.cluster.current import current_client
from daskdl.cluster.processors import threads_of_task
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.tensor import Array


class Parted:
    """Base of the indices: blocks of rows, with one task per block in a search.

    Rows (n, width) of a dask Array stay on the cluster, in the chunks of its first axis. ``make``
    converts rows to a block; ``length`` returns its number of rows.
    """

    def __init__(
        self, rows: Any, make: Callable[[Any], Any], length: Callable[[Any], int] = len
    ) -> None:
        self._threads: int | None = None
        if isinstance(rows, np.ndarray):
            self._blocks: list[Any] = [make(rows)]
            self._lengths = [len(rows)]
            return
        import dask

        whole = rows.rechunk({1: -1})
        made = [dask.delayed(make)(block) for block in whole.to_delayed().ravel()]
        client = current_client()
        self._threads = threads_of_task(client, len(made), type(self).__name__)
        # The workers keep the blocks: each search reads all of them.
        self._blocks = list(dask.persist(*made))
        lengths = dask.compute(*[dask.delayed(length)(block) for block in self._blocks])
        self._lengths = [int(n) for n in lengths]

    def __len__(self) -> int:
        return sum(self._lengths)

    @property
    def _where(self) -> str:
        return "in memory" if self._threads is None else f"in {len(self._blocks)} chunks"

    @property
    def _starts(self) -> list[int]:
        """Number of the first row of each block, and the number of rows."""
        return [0, *np.cumsum(self._lengths).tolist()]

    def _each(
        self, function: Any, arguments: Sequence[Any], blocks: Sequence[tuple[int, ...]] = ()
    ) -> list[Any]:
        """Call a function with each block, or the chosen ``blocks``, and its arguments."""
        places = blocks or [(i,) for i in range(len(self._blocks))]
        chosen = [[self._blocks[i] for i in some] for some in places]
        if self._threads is None:
            return [function(*some, *more) for some, more in zip(chosen, arguments, strict=True)]
        import dask

        tasks = [
            dask.delayed(_within)(self._threads, function, *some, *more)
            for some, more in zip(chosen, arguments, strict=True)
        ]
        return list(dask.compute(*tasks))

    def _least(self, parts: Sequence[tuple[Array, Array]], k: int) -> tuple[Array, Array]:
        """Return the k smallest values (q, k) over all blocks, and the numbers of their rows.

        ``parts`` has both for each block, with numbers that count in the block. For equal values
        the row with the smaller number comes first.
        """
        values = np.concatenate([value for value, _ in parts], 1)
        numbers = [number + first for (_, number), first in zip(parts, self._starts, strict=False)]
        order = np.argsort(values, axis=1, kind="stable")[:, :k]
        together = np.concatenate(numbers, 1)
        return np.take_along_axis(values, order, 1), np.take_along_axis(together, order, 1)


def _within(threads: int, function: Any, *arguments: Any) -> Any:
    with thread_budget(threads):
        return function(*arguments)
