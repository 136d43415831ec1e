"""Products of a few rows with panels in the order of AMX's tiles, inside other kernels.

Panels are laid out as for products of pairs: (panels, summed / 2, COLUMNS) words, filled with zeros
up to whole tiles of 16 pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.microkernel import COLUMNS, address, keep
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.tiles.instructions import BLOCK, LINE, SIDE, TILE, multiply_bfloat16
from daskdl.kernels.tiles.ordered import ROWS, rows_in_order
from daskdl.kernels.tiles.rows import copy_bytes
from daskdl.kernels.tiles.weights import turn


class Tiles(NamedTuple):
    """Panels whose products are summed in the order of tiles, and whether AMX multiplies them."""

    panels: NDArray[np.uint32]
    amx: bool


@jit
def whole_tiles(numbers):
    """Return the number of pairs of ``numbers`` numbers, rounded up to whole tiles."""
    return (numbers + 2 * SIDE - 1) // (2 * SIDE) * SIDE


@jit
def multiply_rows(amx, sizes, a, a_row, a_step, panels, apart, c, c_row, add, table):
    """Compute ``c = a @ b``, or ``c += a @ b`` if ``add``; with ``amx``, tiles are configured.

    ``sizes`` are rows, panels, and pairs, which are whole tiles. ``a``, ``panels`` and ``c`` are
    addresses. In bytes, ``a_row`` and ``c_row`` are steps from row to row, ``a_step`` along a row
    of ``a``, ``apart`` from panel to panel. ``a`` has whole blocks of 32 rows; superfluous rows are
    arbitrary. Rows of ``c`` are whole panels. ``table`` has an int64 for each tile of pairs.
    """
    rows, count, depth = sizes
    tiles, line = depth // SIDE, COLUMNS * 4
    room = np.empty((1 if a_step == 4 else tiles * BLOCK, SIDE), np.uint32)
    spare = np.empty((BLOCK, COLUMNS), np.float32)
    entries = table.reshape(-1)
    for k in range(tiles):
        entries[k] = k * LINE if a_step == 4 else k * 2 * TILE
    for first in range(0, rows, BLOCK):
        source, step = a + first * a_row, a_row
        if a_step != 4:
            for k in range(tiles):
                for half in range(2):
                    to = address(room) + (2 * k + half) * TILE
                    turn(room, source + k * SIDE * a_step + half * SIDE * a_row, a_step, to)
            source, step = address(room), LINE
        here = min(BLOCK, rows - first)
        for j in range(count):
            target, to_row = c + first * c_row + j * line, c_row
            if here < BLOCK:
                target, to_row = address(spare), line
                if add:
                    for r in range(here):
                        copy_bytes(c + (first + r) * c_row + j * line, target + r * line, line)
            b = panels + j * apart
            if amx:
                multiply_bfloat16(
                    address(entries), tiles, source, source + SIDE * step, step, b, b + LINE,
                    SIDE * line, line, target, to_row, add,
                )  # fmt: skip
            else:
                for r in range(0, here, ROWS):
                    for column in range(0, line, LINE):
                        rows_in_order(
                            address(entries), tiles, source + r * step, step, b + column,
                            SIDE * line, line, target + r * to_row + column, to_row, add,
                        )  # fmt: skip
            if here < BLOCK:
                for r in range(here):
                    copy_bytes(target + r * line, c + (first + r) * c_row + j * line, line)
    keep(table)
    keep(room)
    keep(spare)
