"""Convolutions and matrix products in the order of AMX's tiles, for inference and for training.

A few hundred positions at a time are rounded into memory that stays in L2, and multiplied by panels
of weights, 32 x 32 sums at once. The sums are finished (bias, residual, limits) before they are
written. They do not depend on how work is cut: each takes its summands 32 at a time, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.finish import Finish
from daskdl.kernels.products.microkernel import address, keep
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import scratch
from daskdl.kernels.runtime.team import work_over_range
from daskdl.kernels.runtime.threads import cut_rows, threads
from daskdl.kernels.tiles.finish import finish_block, finish_part
from daskdl.kernels.tiles.instructions import (
    BLOCK,
    LINE,
    SIDE,
    TILE,
    add_bfloat16,
    begin_tiles,
    clear_sums,
    end_tiles,
    write_sums,
)
from daskdl.kernels.tiles.ordered import multiply_in_order
from daskdl.kernels.tiles.positions import Positions
from daskdl.kernels.tiles.rows import write_positions
from daskdl.kernels.tiles.trusted import usable

Array = NDArray[np.float32]
Panels = NDArray[np.uint32]

#: Bytes of rows that are rounded together: they stay in L2 (2 MB) with some panels.
ROUNDED = 768 << 10
#: Bytes of panels that all blocks of rows use in turn: they stay in L2.
PANELS = 640 << 10


class Target(NamedTuple):
    """Places of results: first row and column of y, and steps between rows and columns."""

    first: tuple[int, int]
    step: tuple[int, int]


def work_of(
    x: NDArray[Any],
    panels: Panels,
    positions: Positions,
    y: Array,
    finish: Finish,
    target: Target | None = None,
) -> Callable[[], object]:
    """Return a function that writes the products of windows and weights to y.

    x (N, H, W, in) is float32, or uint16: bfloat16 numbers; y (N, rows, columns, out); both are
    C-contiguous. The positions are of the windows on x, the panels come from
    :func:`daskdl.kernels.tiles.weights.panels_of`; the bias in ``finish`` has a number for each
    column of the panels. The target is all of y by default.
    """
    taps = positions.taps
    lines = panels.shape[1] // len(taps)
    # An odd number of cache lines from row to row puts rows in different sets of L1.
    pitch = (lines | 1) * LINE
    around = positions.high - positions.low
    phases, count = len(positions.phases), positions.length
    most = max(2 * BLOCK, ROUNDED // (pitch * phases) - around)
    parts, length, shares = cut_rows(count, most, BLOCK, 2 * BLOCK, len(panels))
    rows = length + around
    room = scratch("tile rows", (threads(), phases * rows * pitch), np.uint8)
    sums = scratch("tile sums", (threads(), BLOCK, BLOCK), np.float32)
    phase, distance = taps.T
    seen = (phase * rows + distance - positions.low) * pitch
    # Bytes from a position's row to each of its tiles' rows, in the order of sums.
    table = (seen[:, None] + np.arange(lines) * LINE).reshape(-1)
    plan = length, rows, positions.low, pitch, lines * SIDE, shares
    grid = (0, 0, 1, 1) if target is None else (*target.first, *target.step)
    shape = *y.shape[1:], y.itemsize, finish.residual.ctypes.data != y.ctypes.data
    # One compiled function serves results of both kinds.
    finish = finish._replace(residual=_bytes(finish.residual))
    return work_over_range(
        _parts, parts * shares, 1, x, panels, positions.phases, positions.sizes, table,
        np.array([*plan, *grid, *shape], np.int64), _bytes(y), finish, room, sums, usable(),
    )  # fmt: skip


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


@jit
def _parts(x, panels, phases, sizes, table, plan, y, finish, room, sums, amx, which, start, stop):
    """Compute parts of the positions, or shares of their panels."""
    length, rows, low, pitch, pairs, shares = plan[0], plan[1], plan[2], plan[3], plan[4], plan[5]
    rounded, ready = room[which], -1
    places = np.empty(length + BLOCK, np.int64)  # and those of the next part's first block
    if amx:
        begin_tiles()
    for item in range(start, stop):
        part, share = divmod(item, shares)
        first = part * length
        if part != ready:
            begin = first + low
            write_positions(x, phases, sizes, begin, begin + rows, address(rounded), pitch, pairs)
            _write_places(sizes, plan, first, places)
            ready = part
        begin = panels.shape[0] * share // shares
        end = panels.shape[0] * (share + 1) // shares
        count = min(length, sizes[7] - first)
        _multiply(
            address(rounded), pitch, table, panels, begin, end, y, plan[10:], places, count, finish,
            sums[which], amx,
        )  # fmt: skip
    if amx:
        end_tiles()
    keep(places)


@jit
def _write_places(sizes, plan, first, places):
    """Write the place in y of each position's first number from ``first`` on, or -1 for none."""
    rows, columns, filters = plan[10], plan[11], plan[12]
    for i in range(places.size):
        line, column = divmod(first + i, sizes[2])
        image, row = divmod(line, sizes[1])
        place = (image * rows + plan[6] + row * plan[8]) * columns + plan[7] + column * plan[9]
        wanted = (row < sizes[5]) & (column < sizes[6]) & (image < sizes[0])
        places[i] = place * filters if wanted else -1


@jit
def _multiply(
    rounded, pitch, table, panels, begin, end, y, shape, places, count, finish, sums, amx
):
    """Multiply ``count`` rows with the panels ``begin`` to ``end``; write the results."""
    tiles, blocks = table.size, -(-count // BLOCK)
    from_b, step = address(panels), 2 * TILE * tiles
    together = max(1, PANELS // step)
    before, behind = -1, 0  # block and panel of the sums that are not finished yet
    for group in range(begin, end, together):
        for block in range(blocks):
            a = rounded + block * BLOCK * pitch
            for panel in range(group, min(group + together, end)):
                # In the middle, so that a processor can multiply tiles and finish at a time.
                half = tiles // 2
                b = from_b + panel * step
                if amx:
                    clear_sums()
                    _add(table, 0, half, a, pitch, b)
                if before >= 0:
                    _finish(sums, places, count, before, behind, y, shape, finish)
                if amx:
                    _add(table, half, tiles, a, pitch, b)
                    write_sums(address(sums), BLOCK * 4)
                else:
                    multiply_in_order(
                        address(table), tiles, a, a + SIDE * pitch, pitch, b, b + TILE, 2 * TILE,
                        LINE, address(sums), BLOCK * 4, False,
                    )  # fmt: skip
                before, behind = block, panel
    _finish(sums, places, count, before, behind, y, shape, finish)


@jit
def _add(table, first, last, a, pitch, b):
    """Add the products of the tiles ``first`` to ``last``."""
    if first < last:
        b += first * 2 * TILE
        add_bfloat16(
            address(table) + first * 8, last - first, a, a + SIDE * pitch, pitch, b, b + TILE,
            2 * TILE, LINE,
        )  # fmt: skip


@jit
def _finish(sums, places, count, block, panel, y, shape, finish):
    """Finish 32 x 32 sums and write them to their rows of results."""
    first, shift = block * BLOCK, panel * BLOCK
    remaining, half = shape[2] - shift, shape[3] == 2
    numbers = (
        address(sums), address(places) + first * 8, min(BLOCK, count - first), shift, address(y),
        address(finish[1]) if shape[4] else 0, address(finish[0]), finish[2][0], finish[2][1], half,
    )  # fmt: skip
    if remaining >= BLOCK:
        finish_block(*numbers)
    else:
        finish_part(*numbers, remaining)
