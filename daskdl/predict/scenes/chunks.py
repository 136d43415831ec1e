"""Decoded chunks of a scene, kept from tile to tile, and the order of tiles that needs few."""

from __future__ import annotations

import itertools
import math
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from daskdl.predict.scenes.tiles import Tiling

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


def strips(tiling: Tiling) -> tuple[int, list[int]]:
    """Return the bytes of chunks to keep, and the width of a strip in tiles along each axis.

    Tiles are computed strip by strip, from the first to the last along the first axis. So each
    chunk is read once, and chunks at the border of two strips twice. The bytes are 0 if there is no
    room for a strip one tile wide, or nothing to keep.
    """
    cells, layout, axes = tiling.cells, tiling.layout, tiling.axes
    wide = [1, *(len(axis.windows) for axis in axes[1:])]
    sizes = None if hasattr(cells, "__dask_graph__") else getattr(cells, "chunks", None)
    if sizes is None:
        return 0, wide
    counts = [-(-n // size) for n, size in zip(cells.shape, sizes, strict=True)]
    row = cells.dtype.itemsize * math.prod(sizes)
    row *= 1 if layout.channel is None else counts[layout.channel]

    def most(i: int, many: int) -> int:
        """Return the most chunks along an axis that ``many`` tiles touch."""
        spans, size = [window.cells for window in axes[i].windows], sizes[layout.image[i]]
        ends = [(spans[k][0], spans[k : k + many][-1][1]) for k in range(0, len(spans), many)]
        return max(-(-stop // size) - start // size for start, stop in ends)

    parts = [1] * len(wide)
    while True:
        # Before a chunk is used again, the rest of its row passes, and as much of the next row;
        # threads that are not in step need one window more.
        along = [most(i, n) + 2 * most(i, 1) for i, n in enumerate(wide[1:], 1)]
        need = row * min(most(0, 1) * math.prod(along), math.prod(counts[a] for a in layout.image))
        if need <= tiling.room:
            return need, wide
        i = wide.index(max(wide))
        if wide[i] == 1:
            return 0, wide
        parts[i] += 1
        wide[i] = -(-len(axes[i].windows) // parts[i])


def in_strips(tiling: Tiling, sample: Place, number: Place) -> tuple[int, ...]:
    """Return the sort key of a tile; samples of one chunk follow each other."""
    kept_bytes, wide = tiling.strips
    each = [tiling.cells.chunks[axis] if kept_bytes else 1 for axis in tiling.layout.samples]
    strip = [i // n for i, n in zip((*sample, *number[1:]), (*each, *wide[1:]), strict=True)]
    return (*strip, *number, *sample)
