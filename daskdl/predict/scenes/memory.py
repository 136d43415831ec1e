"""Memory of a worker that predicts tiles of a scene, projected before anything runs."""

from __future__ import annotations

import math
import os
import sys
import tracemalloc
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import psutil
from dask.utils import format_bytes

from daskdl.errors import DaskdlError, SettingsError
from daskdl.predict.predictor import Predictor
from daskdl.predict.scenes.tiles import Tiling
from daskdl.predict.scenes.windows import like_length

#: Share of a worker's limit above which Dask gives it no more tasks.
SHARE = 0.8
#: Bytes of a process for each byte of its arrays: it keeps freed memory, and kernels need some.
KEPT = 1.6
#: Bytes of a worker besides tasks: messages, threads of stores, gaps in the heap after hours.
OVERHEAD = 128_000_000
#: Share of a worker's limit for chunks of a scene that tiles keep for each other.
CHUNKS = 0.25
#: Cells of the larger of two windows by which the memory of a pass is measured.
MEASURED = 65_536


class Projection(NamedTuple):
    """Bytes of one worker."""

    #: Held besides tasks: the process itself, the network's weights, kept chunks.
    before: int
    #: Held by each thread: cells read, arrays between layers, result.
    task: int
    threads: int
    limit: int

    @property
    def total(self) -> int:
        """Largest number of bytes."""
        return self.before + self.threads * self.task


def room_for_chunks(client: Any) -> float:
    """Return the bytes of a scene's chunks that a worker may keep."""
    return CHUNKS * _places(client)[2]


def check_memory(tiling: Tiling, tile: dict[Any, int], client: Any) -> Tiling:
    """Announce a worker's memory; return the tiling with kept chunks, or raise an error."""
    windows = [max(w.cells[1] - w.cells[0] for w in axis.windows) for axis in tiling.axes]
    channels = 1 if tiling.layout.channel is None else tiling.cells.shape[tiling.layout.channel]
    place = _places(client)
    asked = tiling.predictor, windows, channels, tiling.cells.dtype
    if place[0]:  # on the worker, which then has imported all packages of a task
        future = client.submit(_measured, *asked, workers=[place[0]], pure=False)
        measured = future.result()
        future.release()
    else:
        measured = _measured(*asked)
    one = _projected(replace(tiling, room=0), windows, measured, place)
    spare = SHARE * one.limit - one.total
    if spare >= 0:
        tiling = replace(tiling, room=min(tiling.room, spare))
        one = _projected(tiling, windows, measured, place)
    tiles = " x ".join(map(str, tile.values()))
    line = (
        f"{format_bytes(one.total)} a worker of {format_bytes(one.limit)}: {one.threads} x "
        f"{format_bytes(one.task)} for tiles of {tiles}, {format_bytes(one.before)} before"
    )
    if spare >= 0:
        print(f"predict: at most {line}", file=sys.stderr, flush=True)
        return tiling
    steps = [axis.scale.numerator for axis in tiling.axes]
    smaller = [*tile.values()]
    margins = [w - t for w, t in zip(windows, smaller, strict=True)]
    while True:
        halves = [max(s, t // 2 // s * s) for t, s in zip(smaller, steps, strict=True)]
        if halves == smaller:
            advice = "no tile fits; give workers fewer threads or more memory, or smaller chunks"
            break
        smaller = halves
        size = [t + m for t, m in zip(smaller, margins, strict=True)]
        less = _projected(tiling, size, measured, place)
        if less.total <= SHARE * less.limit:
            advice = f"tile={dict(zip(tile, smaller, strict=True))!r} would fit"
            break
    raise SettingsError(
        f"predict, tile: expected at most {SHARE:.0%} of a worker's memory, found {line}; {advice}"
    )


def _places(client: Any) -> tuple[str, int, int, int]:
    """Return address, threads, limit of the worker with the least memory a thread; their number."""
    workers = client.scheduler_info(n_workers=-1)["workers"] if client else {}
    if not workers:  # none yet
        return "", len(os.sched_getaffinity(0)), psutil.virtual_memory().available, 1
    limits = [(w["memory_limit"] or sys.maxsize, w["nthreads"], at) for at, w in workers.items()]
    limit, threads, address = min(limits, key=lambda one: one[0] / one[1])
    return address, threads, limit, len(limits)


def _projected(
    tiling: Tiling,
    windows: list[int],
    measured: tuple[float, float, int],
    place: tuple[str, int, int, int],
) -> Projection:
    cells, layout, kept_bytes = tiling.cells, tiling.layout, 0
    address, threads, limit, workers = place
    lengths = dict.fromkeys(layout.samples, 1) | dict(zip(layout.image, windows, strict=True))
    read = math.prod(lengths.get(axis, n) for axis, n in enumerate(cells.shape))
    chunks = getattr(cells, "chunksize", getattr(cells, "chunks", None))
    if chunks is not None:  # whole chunks are decoded, and Dask holds all chunks of a window
        along = [
            min(n, (-(-lengths.get(axis, n) // c) + 1) * c)
            for axis, (n, c) in enumerate(zip(cells.shape, chunks, strict=True))
        ]
        size, first = cells.dtype.itemsize, layout.image[0]
        if hasattr(cells, "__dask_graph__"):
            # Dask also holds rows of chunks until the next row of tiles has passed, on all workers.
            read += math.prod(along)
            rows = [cells.shape[a] if a in layout.image[1:] else n for a, n in enumerate(along)]
            rows[first] = min(cells.shape[first], along[first] + chunks[first])
            kept_bytes = math.prod(rows) * size // workers
        elif kept_bytes := tiling.strips[0]:
            kept_bytes += math.prod(along) * size  # chunks that are read together
        else:
            read += math.prod(chunks)
    fixed, each, before = measured
    before = OVERHEAD + kept_bytes + (before if address else sys.getsizeof(tiling.predictor))
    task = int(read * cells.dtype.itemsize + KEPT * (fixed + each * math.prod(windows)))
    return Projection(before, task, threads, limit)


def _measured(
    predictor: Predictor, windows: list[int], channels: int, dtype: Any
) -> tuple[float, float, int]:
    """Return the bytes of a pass for any window, its bytes for each cell, and the process's."""
    side = round(MEASURED ** (1 / len(windows)))
    step = 64 if len(windows) < 3 else 16
    points = []
    try:
        for least in (side // 2, side):
            sizes = [like_length(n, step, least) for n in windows]
            points.append((math.prod(sizes), _peak(predictor, sizes, channels, dtype)))
        (few, low), (many, high) = points
        each = (high - low) / (many - few) if many > few else high / many
        fixed = max(0.0, high - each * many)
    except (DaskdlError, ValueError):  # a network for windows of this size alone
        fixed, each = _peak(predictor, windows, channels, dtype), 0.0
    return fixed, each, psutil.Process().memory_info().rss


def _peak(predictor: Predictor, sizes: list[int], channels: int, dtype: Any) -> int:
    """Return the most bytes of arrays that a pass of one window holds."""
    images = np.zeros((1, *sizes, channels), dtype)
    predictor(images)  # arrays that are kept after it do not belong to one pass
    was = tracemalloc.is_tracing()
    if not was:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        predictor(images)
        return tracemalloc.get_traced_memory()[1] - before + images.nbytes
    finally:
        if not was:
            tracemalloc.stop()
