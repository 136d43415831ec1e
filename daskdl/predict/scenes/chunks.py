"""Decoded chunks of a scene, kept from tile to tile."""

from __future__ import annotations

import itertools
import math
import threading
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Place = tuple[int, ...]


class Chunked:
    """A scene on disk, such as a zarr Array; a process keeps the chunks that it used last.

    ``most`` is the number of bytes to keep.
    """

    def __init__(self, cells: Any, most: int) -> None:
        self._cells, self._most = cells, most
        self._chunks: OrderedDict[Place, Array] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Chunked, (self._cells, self._most)

    def __getitem__(self, window: tuple[slice, ...]) -> Array:
        sizes, dtype = self._cells.chunks, self._cells.dtype
        along = (range(p.start // n, -(-p.stop // n)) for p, n in zip(window, sizes, strict=True))
        touched = [*itertools.product(*along)]
        with self._lock:  # otherwise two threads would read the same chunks
            for place in (place for place in touched if place in self._chunks):
                self._chunks.move_to_end(place)
            missing = [place for place in touched if place not in self._chunks]
            filled = len(missing) * math.prod(sizes) * dtype.itemsize
            filled += sum(chunk.nbytes for chunk in self._chunks.values())
            while self._chunks and filled > self._most:
                filled -= self._chunks.popitem(last=False)[1].nbytes
            box = [range(min(among), max(among) + 1) for among in zip(*missing, strict=True)]
            full = math.prod(map(len, box)) == len(missing)
            for some in [box] if full else [[range(i, i + 1) for i in p] for p in missing]:
                self._read(some)
            chunks = {place: self._chunks[place] for place in touched}
        result = np.empty([part.stop - part.start for part in window], dtype)
        for place, chunk in chunks.items():
            to, of = [], []
            for part, i, n, size in zip(window, place, chunk.shape, sizes, strict=True):
                low, high = max(part.start, i * size), min(part.stop, i * size + n)
                to.append(slice(low - part.start, high - part.start))
                of.append(slice(low - i * size, high - i * size))
            result[tuple(to)] = chunk[tuple(of)]
        return result

    def _read(self, box: list[range]) -> None:
        """Read adjacent chunks in one call, which a store may answer in parallel."""
        sizes = self._cells.chunks
        ends = [(r.start * n, r.stop * n) for r, n in zip(box, sizes, strict=True)]
        read = self._cells[tuple(slice(*end) for end in ends)]
        for place in itertools.product(*box):
            first = [(i - r.start) * n for i, r, n in zip(place, box, sizes, strict=True)]
            part = tuple(slice(at, at + n) for at, n in zip(first, sizes, strict=True))
            self._chunks[place] = read[part].copy()
