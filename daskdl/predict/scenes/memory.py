"""Memory of a worker that predicts tiles of a scene: projected and told before anything runs."""

from __future__ import annotations

import math
import sys
import tracemalloc
from typing import Any, NamedTuple

import numpy as np

from daskdl.errors import DaskdlError, SettingsError
from daskdl.predict.scenes.tiles import Tiling
from daskdl.predict.scenes.windows import like_length

#: Share of a worker's limit above which Dask hands it no more tasks.
SHARE = 0.8
#: Bytes of a process for each byte of its arrays: it keeps freed memory, and kernels need some.
KEPT = 1.3
#: Cells of the larger of two windows by which the memory of a pass is measured.
MEASURED = 65_536


class Projection(NamedTuple):
    """Bytes of one worker.

    Attributes
    ----------
    before : int
        Held before anything runs, with the network's weights.
    task : int
        Of each thread: cells read, numbers between layers, result.
    threads : int
    limit : int
    """

    before: int
    task: int
    threads: int
    limit: int

    @property
    def total(self) -> int:
        """Bytes at the most."""
        return self.before + self.threads * self.task


def check_memory(tiling: Tiling, tile: dict[Any, int], client: Any) -> None:
    """Tell the memory of a worker, and raise a SettingsError if it will not do."""
    windows = [max(w.cells[1] - w.cells[0] for w in axis.windows) for axis in tiling.axes]
    channels = 1 if tiling.layout.channel is None else tiling.cells.shape[tiling.layout.channel]
    measured = _measured(tiling, windows, channels)
    one = _projected(tiling, windows, measured, client)
    from dask.utils import format_bytes

    tiles = " x ".join(map(str, tile.values()))
    line = (
        f"{format_bytes(one.total)} a worker of {format_bytes(one.limit)}: {one.threads} x "
        f"{format_bytes(one.task)} for tiles of {tiles}, {format_bytes(one.before)} before"
    )
    if one.total <= SHARE * one.limit:
        print(f"predict: at most {line}", file=sys.stderr, flush=True)
        return
    steps = [axis.scale.numerator for axis in tiling.axes]
    smaller, margins = (
        list(tile.values()),
        [w - t for w, t in zip(windows, tile.values(), strict=True)],
    )
    while True:
        halves = [max(s, t // 2 // s * s) for t, s in zip(smaller, steps, strict=True)]
        if halves == smaller:
            advice = "no tile fits; give workers fewer threads or more memory, or smaller chunks"
            break
        smaller = halves
        size = [t + m for t, m in zip(smaller, margins, strict=True)]
        less = _projected(tiling, size, measured, client)
        if less.total <= SHARE * less.limit:
            advice = f"tile={dict(zip(tile, smaller, strict=True))!r} would fit"
            break
    raise SettingsError(
        f"predict, tile: expected at most {SHARE:.0%} of a worker's memory, found {line}; {advice}"
    )


def _projected(
    tiling: Tiling, windows: list[int], measured: tuple[float, float], client: Any
) -> Projection:
    cells, layout = tiling.cells, tiling.layout
    lengths = dict(zip(layout.image, windows, strict=True))
    lengths |= dict.fromkeys(layout.samples, 1)
    read = math.prod(lengths.get(axis, n) for axis, n in enumerate(cells.shape))
    read *= cells.dtype.itemsize
    chunks = getattr(cells, "chunksize", getattr(cells, "chunks", None))
    if chunks is not None:  # whole ones are decoded, and Dask holds all in which a window lies
        touched = [
            min(n, (-(-lengths.get(axis, n) // c) + 1) * c)
            for axis, (n, c) in enumerate(zip(cells.shape, chunks, strict=True))
        ]
        lazy = hasattr(cells, "__dask_graph__")
        read += math.prod(touched if lazy else chunks) * cells.dtype.itemsize
    fixed, each = measured
    task = int(read + KEPT * (fixed + each * math.prod(windows)))
    before = sys.getsizeof(tiling.predictor)
    if client:
        told = client.scheduler_info(n_workers=-1)["workers"].values()
        worst = min(
            told, key=lambda w: w["memory_limit"] / w["nthreads"] if w["memory_limit"] else math.inf
        )
        limit = worst["memory_limit"] or sys.maxsize
        return Projection(before + worst["metrics"]["memory"], task, worst["nthreads"], limit)
    import os

    import psutil

    threads = len(os.sched_getaffinity(0))
    return Projection(before, task, threads, psutil.virtual_memory().available)


def _measured(tiling: Tiling, windows: list[int], channels: int) -> tuple[float, float]:
    """Return the bytes of a pass: those of any window, and those of each of its cells."""
    side = round(MEASURED ** (1 / len(windows)))
    step = 64 if len(windows) < 3 else 16
    points = []
    for least in (side // 2, side):
        sizes = [like_length(n, step, least) for n in windows]
        try:
            points.append((math.prod(sizes), _peak(tiling, sizes, channels)))
        except (DaskdlError, ValueError):  # a network of windows of this one size
            return float(_peak(tiling, windows, channels)), 0.0
    (few, low), (many, high) = points
    each = max(0.0, (high - low) / (many - few)) if many > few else high / many
    return max(0.0, high - each * many), each


def _peak(tiling: Tiling, sizes: list[int], channels: int) -> int:
    """Return the most bytes of arrays that a pass of one window holds."""
    images = np.zeros((1, *sizes, channels), tiling.cells.dtype)
    tiling.predictor(images)  # what is kept from then on is not of one pass
    was = tracemalloc.is_tracing()
    if not was:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        tiling.predictor(images)
        return tracemalloc.get_traced_memory()[1] - before + images.nbytes
    finally:
        if not was:
            tracemalloc.stop()
