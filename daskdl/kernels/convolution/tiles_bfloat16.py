"""Convolution in bfloat16 in inference: pixels are rounded by tiles, right before their products.

The rounded numbers of windows are gathered into rows, as many as stay in L2; the tall blocks of
:mod:`daskdl.kernels.products.pointwise` then multiply them. So an image is read once, and its
rounded numbers never leave the caches. Sums have the order of
:mod:`daskdl.kernels.convolution.direct`, and so the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products import pointwise
from daskdl.kernels.products.bfloat16 import round_row
from daskdl.kernels.products.finish import Finish
from daskdl.kernels.products.microkernel import COLUMNS, DEPTH, address
from daskdl.kernels.products.tall import TALL
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import scratch
from daskdl.kernels.runtime.team import over_range, work_over_range
from daskdl.kernels.runtime.threads import least_of, threads

Array = NDArray[np.float32]
Pairs = NDArray[np.uint32]

#: Pairs of a cache line.
LINE = 16


def work_of(
    x: Array, panels: Pairs, geometry: Geometry, y: Array, finish: Finish
) -> Callable[[], object]:
    """Return a function that convolves x (N, H, W, in) to y, both C-contiguous, at each call.

    The panels (panels, taps, in / 2, COLUMNS) come from
    :func:`daskdl.kernels.convolution.bfloat16.panels_of`; there are no groups.
    """
    taps, pairs = panels.shape[1:3]
    depth, rows = taps * pairs, y.size // y.shape[3]
    # An odd number of cache lines from row to row puts rows in different sets of L1.
    stride = (-(-depth // LINE) | 1) * LINE
    flat = panels.reshape(len(panels), depth, COLUMNS)
    windows = x, geometry.offsets(), np.array([*geometry.stride, pairs, geometry.pointwise])
    if taps == 1 and pointwise.by_panels(rows, len(panels)):
        whole = scratch("rounded", (rows, stride), np.uint32)
        results = y.reshape(rows, y.shape[3])
        finish = Finish(finish.bias, finish.residual.reshape(results.shape), finish.limits)
        return partial(_by_panels, windows, y.shape[1:3], whole, flat, results, finish)
    tile = TALL * pointwise.tile_of(len(panels) * depth, stride)
    room = scratch("tiles", (threads(), tile, stride), np.uint32)
    tall, least = -(-rows // TALL), least_of(4.0 * depth * COLUMNS * TALL * len(panels))
    return work_over_range(_tiles, tall, least, *windows, flat, _cuts(taps, pairs), y, finish, room)


def _by_panels(
    windows: tuple[Any, ...], size: tuple[int, int], rounded: Pairs, panels: Pairs,
    y: Array, finish: Finish,
) -> None:  # fmt: skip
    """Round a few rows at once, and share the weights, which are then read once."""
    least = least_of(4 * rounded.shape[1])
    over_range(_round, len(rounded), least, *windows, *size, rounded)
    least = least_of(4 * rounded.size * COLUMNS)
    over_range(pointwise.product_of_panels, len(panels), least, rounded, panels, y, finish)


@jit
def _round(x, offsets, plan, rows, columns, rounded, which, start, stop):
    _gather(x, offsets, plan, rows, columns, start, stop - start, rounded[start:stop])


def _cuts(taps: int, pairs: int) -> NDArray[np.int64]:
    """Return the first summand of each part of a window's sum, and the end, int64 (parts + 1,).

    They are the same as in :mod:`daskdl.kernels.convolution.direct`.
    """
    slices = -(-pairs // DEPTH)
    length = -(-pairs // slices)
    starts = [tap * pairs + s * length for tap in range(taps) for s in range(slices)]
    return np.array([*starts[:: max(1, DEPTH // length)], taps * pairs])


@jit
def _tiles(x, offsets, plan, panels, cuts, y, finish, room, which, start, stop):
    """Compute the blocks of windows ``start`` to ``stop``."""
    tile, filters = room[which], y.shape[3]
    results = y.reshape(-1, filters)
    first, end = start * TALL, min(stop * TALL, results.shape[0])
    parts = -(-(end - first) // tile.shape[0])
    length = -(-(end - first) // (parts * TALL)) * TALL
    line = x.shape[3] * 4 if plan[3] else 0
    for begin in range(first, end, length):
        count = min(length, end - begin)
        last = begin + count
        _gather(x, offsets, plan, y.shape[1], y.shape[2], begin, count, tile)
        following = min(last + length, end)
        ahead = pointwise.soon(address(x) + last * line, line, results, finish, last, following)
        pointwise.in_slices(
            tile, address(tile), tile.shape[1] * 4, cuts, panels, results, finish, begin, last, 0,
            panels.shape[0], ahead,
        )  # fmt: skip


@jit
def _gather(x, offsets, plan, rows, columns, first, count, tile):
    """Write the rounded numbers of some windows to the rows of a tile."""
    down, across, pairs, _ = plan
    height, width, channels = x.shape[1:]
    from_x, size, target = address(x), channels * 4, address(tile)
    n, rest = divmod(first, rows * columns)
    t, u = divmod(rest, columns)
    for _ in range(count):
        for tap in range(offsets.shape[0]):
            row, column = t * down + offsets[tap, 0], u * across + offsets[tap, 1]
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            pixel = from_x + ((n * height + row) * width + column) * size
            round_row(pixel, channels if inside else 0, target + tap * pairs * 4, pairs)
        target += tile.shape[1] * 4
        u += 1
        if u == columns:
            u, t = 0, t + 1
            if t == rows:
                t, n = 0, n + 1
