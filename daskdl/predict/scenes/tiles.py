"""Tiles: the graph of a scene's prediction, with a task for each tile, or window and tile."""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.compat.dask import HighLevelGraph, Task, TaskRef
from daskdl.errors import SettingsError
from daskdl.predict.kept import for_tasks
from daskdl.predict.partitions import only
from daskdl.predict.predictor import Predictor
from daskdl.predict.scenes.chunks import Chunked
from daskdl.predict.scenes.tasks import (
    WINDOW,
    Common,
    File,
    Layout,
    Part,
    Span,
    Target,
    blended,
    tile,
)
from daskdl.predict.scenes.windows import Axis

if TYPE_CHECKING:
    import dask.array as da

#: Indices of a tile among a result's chunks, of a sample, or of a window along its axes.
Place = tuple[int, ...]


@dataclass(frozen=True)
class Tiling:
    """Tiles of a scene's result."""

    predictor: Predictor
    cells: Any
    layout: Layout
    axes: list[Axis]
    blend: str
    nodata: float | None
    #: Bytes of the scene's chunks that a worker may keep.
    room: float = 0

    @cached_property
    def strips(self) -> tuple[int, list[int]]:
        """Bytes of chunks to keep, and the width of a strip in tiles along each axis.

        Tiles are computed strip by strip, from the first to the last along the first axis. So each
        chunk is read once, and chunks at the border of two strips twice. The bytes are 0 if there
        is no room for a strip one tile wide, or nothing to keep.
        """
        cells, layout, axes = self.cells, self.layout, self.axes
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
            whole = math.prod(counts[axis] for axis in layout.image)
            need = row * min(most(0, 1) * math.prod(along), whole)
            if need <= self.room:
                return need, wide
            i = wide.index(max(wide))
            if wide[i] == 1:
                return 0, wide
            parts[i] += 1
            wide[i] = -(-len(axes[i].windows) // parts[i])

    def _in_strips(self, sample: Place, number: Place) -> tuple[int, ...]:
        """Return the sort key of a tile; samples of one chunk follow each other."""
        kept_bytes, wide = self.strips
        each = [self.cells.chunks[axis] if kept_bytes else 1 for axis in self.layout.samples]
        strip = [i // n for i, n in zip((*sample, *number[1:]), (*each, *wide[1:]), strict=True)]
        return (*strip, *number, *sample)

    @cached_property
    def common(self) -> Common:
        """Properties that all tiles share, from the result of the smallest window, of zeros."""
        layout = self.layout
        sizes = [min(w.cells[1] - w.cells[0] for w in axis.windows) for axis in self.axes]
        channels = 1 if layout.channel is None else self.cells.shape[layout.channel]
        like = only(self.predictor(np.zeros((1, *sizes, channels), self.cells.dtype)))
        has = like.ndim == len(sizes) + 2 and (like.shape[-1] > 1 or layout.channel is not None)
        scales = tuple(axis.scale for axis in self.axes)
        return Common(layout, has, self.nodata, like[(slice(1), *[slice(1)] * len(sizes))], scales)

    @cached_property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """Lengths of the tiles along each axis of the result."""
        common, layout = self.common, self.layout
        chunks = {axis: (1,) * self.cells.shape[axis] for axis in layout.samples}
        for i, axis in zip(layout.image, self.axes, strict=True):
            chunks[i] = tuple(w.results[1] - w.results[0] for w in axis.windows)
        chunks[-1 if layout.channel is None else layout.channel] = (common.like.shape[-1],)
        return tuple(chunks[axis] for axis in layout.order(common.channels))

    def tasks(
        self,
        name: str,
        model: Any,
        to: Mapping[Place, Target] | None = None,
        sent: bool = False,
        ranked: bool = False,
    ) -> tuple[dict[Any, Task], dict[Any, Any]]:
        """Return the task of each tile by its key, and the tasks before them.

        Keys end with a tile's place among the result's chunks. ``ranked`` keys have its number in
        the order of reading before that; Dask compares keys as text, and so keeps the order. With
        ``to`` there are only these tiles; they are written, and tasks return their digests. If
        ``sent``, tasks carry the windows of a scene in memory.
        """
        cells, layout, axes, common = self.cells, self.layout, self.axes, self.common
        lazy = hasattr(cells, "__dask_graph__")
        tiles: dict[Any, Task] = {}
        behind: dict[Any, Any] = {}
        room, cells_key = self.strips[0], f"{name}-cells"
        if not lazy and not sent:
            behind[cells_key] = Task(cells_key, Chunked, cells, room) if room else file_of(cells)
        order = layout.order(common.channels)

        def work(
            key: Any, sample: Place, number: Place, cut: tuple[slice, ...], target: Any
        ) -> Task:
            windows = [axis.windows[i] for axis, i in zip(axes, number, strict=True)]
            spans = _spans(cells, layout, sample, [window.cells for window in windows])
            parts: list[Part] | None = None
            refs: list[Any] = [TaskRef(cells_key)]
            if lazy:
                refs, parts = _sources(cells, spans)
            elif sent:
                refs = [cells[tuple(slice(*span) for span in spans)]]
                spans = [(0, n) for n in refs[0].shape]
            return Task(key, tile, model, common, spans, cut, parts, target, *refs)

        samples = itertools.product(*(range(cells.shape[axis]) for axis in layout.samples))
        numbers = itertools.product(*(range(len(axis.windows)) for axis in axes))
        each = [*itertools.product(samples, numbers)]
        each.sort(key=lambda one: self._in_strips(*one))
        for rank, (sample, number) in enumerate(each):
            at = _place(order, layout, sample, number)
            if to is not None and at not in to:
                continue
            key: Any = (name, f"{rank:09}", *at) if ranked else (name, *at)
            target = None if to is None else to[at]
            if self.blend == "none":
                windows = [axis.windows[i] for axis, i in zip(axes, number, strict=True)]
                cut = tuple(
                    slice(w.skipped, w.skipped + w.results[1] - w.results[0]) for w in windows
                )
                tiles[key] = work(key, sample, number, cut, target)
                continue
            near = [
                [j for j in (i - 1, i, i + 1) if 0 <= j < len(axis.windows)]
                for axis, i in zip(axes, number, strict=True)
            ]
            others = list(itertools.product(*near))
            for other in others:
                other_key = (f"{name}-window", *sample, *other)
                if other_key not in behind:
                    whole = (slice(None),) * len(axes)
                    behind[other_key] = work(other_key, sample, other, whole, WINDOW)
            shares = [_share(axes, other, number, self.blend) for other in others]
            refs = [TaskRef((f"{name}-window", *sample, *other)) for other in others]
            tiles[key] = Task(key, blended, common, shares, target, *refs)
        return tiles, behind

    def lazy(self) -> da.Array:
        """Return the lazy result, a task for each tile."""
        import dask.array as da

        name = f"scene-{uuid.uuid4().hex}"
        model, sources = self.model()
        tiles, behind = self.tasks(name, model)
        graph = HighLevelGraph.from_collections(name, {**behind, **tiles}, sources)
        return da.Array(graph, name, self.chunks, dtype=self.common.like.dtype)

    def model(self) -> tuple[Any, list[Any]]:
        """Return the tasks' reference to the predictor, and the collections that tasks need."""
        reference, sources = for_tasks(self.predictor)
        return reference, [*[self.cells] * hasattr(self.cells, "__dask_graph__"), *sources]


def _place(order: list[int], layout: Layout, sample: Place, number: Place) -> Place:
    """Return the place of a tile among a result's chunks."""
    places = dict(zip((*layout.samples, *layout.image), (*sample, *number), strict=True))
    return tuple(places.get(axis, 0) for axis in order)


def _spans(cells: Any, layout: Layout, sample: tuple[int, ...], image: list[Span]) -> list[Span]:
    """Return the cells of a window along all axes of a scene."""
    spans = [(0, n) for n in cells.shape]
    for axis, i in zip(layout.samples, sample, strict=True):
        spans[axis] = (i, i + 1)
    for axis, span in zip(layout.image, image, strict=True):
        spans[axis] = span
    return spans


def _sources(cells: Any, spans: list[Span]) -> tuple[list[Any], list[Part]]:
    """Return the chunks of a dask Array with parts of a window, and these parts."""
    along = []
    for (start, stop), sizes in zip(spans, cells.chunks, strict=True):
        ends = np.cumsum(sizes)
        first, last = np.searchsorted(ends, [start, stop - 1], side="right")
        chunks = []
        for i in range(int(first), int(last) + 1):
            begin = int(ends[i]) - sizes[i]
            low, high = max(start, begin), min(stop, int(ends[i]))
            chunks.append((i, slice(low - start, high - start), slice(low - begin, high - begin)))
        along.append(chunks)
    refs, parts = [], []
    for chunk in itertools.product(*along):
        refs.append(TaskRef((cells.name, *(i for i, _, _ in chunk))))
        parts.append((tuple(to for _, to, _ in chunk), tuple(of for _, _, of in chunk)))
    return refs, parts


def _share(axes: list[Axis], of: Place, at: Place, blend: str) -> Any:
    """Return the part of a window within a tile, and its weights along each axis."""
    cuts, weights = [], []
    for axis, i, j in zip(axes, of, at, strict=True):
        window, start = axis.windows[i], axis.windows[j].results[0]
        first = window.results[0] - window.skipped
        share = axis.weights(i, j, blend)
        inside = np.flatnonzero(share)
        low, high = (inside[0], inside[-1] + 1) if inside.size else (0, 0)
        cuts.append((slice(start + low - first, start + high - first), slice(low, high)))
        weights.append(share[low:high])
    return cuts, weights, tuple(axis.windows[j].results[1] - axis.windows[j].results[0]
                                for axis, j in zip(axes, at, strict=True))  # fmt: skip


def file_of(cells: Any) -> Any:
    """Return a scene for a graph: itself, or the file of a memmap."""
    if not isinstance(cells, np.memmap) or cells.filename is None:
        return cells
    base = cells.base
    whole = not isinstance(base, np.memmap) and cells.mode != "c"
    if not whole or not (cells.flags.c_contiguous or cells.flags.f_contiguous):
        raise SettingsError(
            "predict, tile: expected a whole memmap as its file has it, found a part, or mode 'c'; "
            "open it by numpy.memmap(..., 'r', offset=, shape=), or give numpy.asarray(memmap)"
        )
    order = "C" if cells.flags.c_contiguous else "F"
    return File(str(cells.filename), cells.dtype, cells.offset, cells.shape, order)
