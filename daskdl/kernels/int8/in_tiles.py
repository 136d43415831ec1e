"""Convolutions of bytes by AMX's tiles, which need equally spaced rows.

If channels are whole tiles, rows are the images' positions, so that a tap of a window is a distance
between rows; a 1x1 convolution reads the images in place. Otherwise the bytes of a result's taps
are gathered into one row, with zeros up to whole tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.int8.block import COLUMNS
from daskdl.kernels.int8.rows import gather_rows, write_table
from daskdl.kernels.int8.tiles import AMX, multiply_rows
from daskdl.kernels.products.microkernel import address, keep
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import scratch
from daskdl.kernels.runtime.team import work_over_range
from daskdl.kernels.runtime.threads import cut_rows, threads
from daskdl.kernels.tiles.instructions import BLOCK, LINE, SIDE, begin_tiles, end_tiles
from daskdl.kernels.tiles.positions import positions_of
from daskdl.kernels.tiles.rows import write_positions

#: Bytes of rows that are copied together: they stay in L2 (2 MB) with some panels.
COPIED = 512 << 10


def in_tiles(
    x: NDArray[np.uint8], zero: int, geometry: Geometry, tiles: int, plan: list[int], arrays: Any
) -> Callable[[], object]:
    """Return the work of :func:`daskdl.kernels.int8.product.work_of`, with its plan and arrays.

    ``tiles`` is a way of :mod:`daskdl.kernels.int8.tiles`.
    """
    words, channels, size = arrays[0], x.shape[3], (plan[4], plan[5])
    taps, lines = geometry.offsets(), -(-words.shape[1] // SIDE)
    count = len(x) * size[0] * size[1]
    seen = positions_of(x.shape, taps, geometry.stride, size)
    by_position, between, phases, wide = False, 0, 1, lines
    # Positions without a result cost products; gathered rows are many times as long.
    few = 3 * (seen.length - count) < count
    if few and channels % LINE == 0 and words.shape[1] * 4 == len(taps) * channels:
        count, between, phases = seen.length, seen.high - seen.low, len(seen.phases)
        by_position, wide = True, channels // LINE
    # An odd number of cache lines from row to row puts rows in different sets of L1.
    pitch = (wide | 1) * LINE
    length = max(2 * BLOCK, (COPIED // (pitch * phases) - between) // BLOCK * BLOCK)
    parts, length, shares = cut_rows(count, length, BLOCK, 2 * BLOCK, len(words))
    rows = length + between
    offsets = np.arange(lines) * LINE
    if by_position:
        phase, distance = seen.taps.T
        starts = (phase * rows + distance - seen.low) * pitch
        offsets = (starts[:, None] + offsets[:wide]).reshape(-1)
    more = np.array([
        *plan, length, shares, by_position, rows, pitch, seen.low, zero, count, tiles
    ], np.int64)  # fmt: skip
    addresses = 1 if by_position else len(taps) * length
    table = scratch("int8 table", (threads(), addresses), np.int64)
    places = scratch("int8 places", (threads(), length + BLOCK), np.int64)
    room = scratch("int8 rows", (threads(), phases * rows * pitch), np.uint8)
    sums = scratch("int8 sums", (threads(), BLOCK, COLUMNS), np.int32)
    pairs = x.view(np.uint16) if by_position else np.empty((1, 1, 1, 1), np.uint16)
    around = np.full(max(channels, words.shape[1] // len(taps) * 4), zero, np.uint8)
    return work_over_range(
        _parts, parts * shares, 1, x.reshape(-1), pairs, seen.phases, seen.sizes, taps, offsets,
        more, around, *arrays, table, places, room, sums,
    )  # fmt: skip


@jit
def _parts(
    x, pairs, phases, sizes, taps, offsets, plan, around, words, columns, limits, y, residual,
    tables, places, rooms, sums, which, start, stop,
):  # fmt: skip
    """Compute parts of the results, or shares of their panels."""
    length, shares, by_position, rows, pitch = plan[13], plan[14], plan[15], plan[16], plan[17]
    count, tiles = plan[20], plan[21]
    table, targets, room, ready = tables[which], places[which], address(rooms[which]), -1
    packed = (
        columns.shape[1] * 4, address(y), address(residual), plan[9], plan[10], plan[11], limits[0],
        limits[1], limits[2], limits[3], plan[12], limits[4], limits[5],
    )  # fmt: skip
    if tiles == AMX:
        begin_tiles()
    for item in range(start, stop):
        part, share = divmod(item, shares)
        first = part * length
        here = min(length, count - first)
        if part != ready:
            if by_position:
                begin = first + plan[18]
                write_positions(
                    pairs, phases, sizes, begin, begin + rows, room, pitch, plan[3] // 4, plan[19]
                )
            else:
                write_table(x, taps, plan, around, first, here, here, table)
                gather_rows(table, taps.shape[0], here, words.shape[1] * 4, room, pitch)
            _write_targets(sizes, plan, by_position, first, here, targets)
            ready = part
        begin = words.shape[0] * share // shares
        end = words.shape[0] * (share + 1) // shares
        multiply_rows(
            room, pitch, offsets, words, columns, plan[6], targets, here, begin, end, packed,
            sums[which], tiles,
        )  # fmt: skip
    if tiles == AMX:
        end_tiles()
    keep(around)


@jit
def _write_targets(sizes, plan, by_position, first, here, targets):
    """Write the numbers of the rows' results, and -1 for rows without one."""
    targets[:] = -1
    if not by_position:
        for i in range(here):
            targets[i] = (first + i) * plan[6]
        return
    line, column = divmod(first, sizes[2])
    image, row = divmod(line, sizes[1])
    for i in range(here):
        if row < sizes[5] and column < sizes[6]:
            targets[i] = ((image * sizes[5] + row) * sizes[6] + column) * plan[6]
        column += 1
        if column == sizes[2]:
            column, row = 0, row + 1
            if row == sizes[1]:
                row, image = 0, image + 1
