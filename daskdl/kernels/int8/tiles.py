"""Products of equally spaced rows of bytes by AMX's tiles: 32 x 64 sums of a panel, and their end.

Panels are the same as for other products: their lines of 16 words already are tiles of B.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from daskdl.kernels.int8.arithmetic import way_of
from daskdl.kernels.int8.block import BYTES, COLUMNS, finish, finish_narrow
from daskdl.kernels.products.microkernel import LANES, address, keep, number, put_number
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.precision import permitted
from daskdl.kernels.tiles import trusted
from daskdl.kernels.tiles.instructions import (
    BLOCK,
    LINE,
    SIDE,
    begin_tiles,
    end_tiles,
    multiply_bytes,
    multiply_cold_bytes,
)

#: Bytes of panels that a block of rows multiplies in turn: they stay in L2 (2 MB).
PANELS = 512 << 10
#: Ways to make sums: without tiles, by AMX, and in the same tiles without AMX.
NONE, AMX, ORDINARY = 0, 1, 2


@cache
def usable() -> int:
    """Return ``AMX`` if it is permitted and multiplies bytes correctly, else ``NONE``."""
    if LANES != SIDE or way_of(LANES) != "vnni" or not permitted():
        return NONE
    draw = np.random.default_rng(0)
    rows = draw.integers(0, 256, (BLOCK, 3 * LINE), np.uint8)
    words = draw.integers(-(2**31), 2**31, (1, 3 * SIDE, COLUMNS), np.int32)
    by_amx, without = np.zeros((2, BLOCK, COLUMNS), np.int32)
    _sums(rows, words, by_amx, AMX)
    _sums(rows, words, without, ORDINARY)
    return AMX if trusted.agree(by_amx, without) else NONE


@jit
def _sums(rows, words, sums, tiles):
    offsets = np.arange(3) * LINE
    if tiles == AMX:
        begin_tiles()
    for side in range(0, 4 * COLUMNS, 2 * LINE):
        b, c = address(words) + side, address(sums) + side
        _block(sums, offsets, address(rows), 3 * LINE, b, c, False, tiles)
    if tiles == AMX:
        end_tiles()
    keep(offsets)


@jit
def multiply_rows(
    a, pitch, offsets, words, columns, filters, targets, here, begin, end, packed, sums,
    tiles,
):  # fmt: skip
    """Multiply the rows at ``a``, ``pitch`` bytes apart, by the panels ``begin`` to ``end``.

    ``offsets`` lead from a row to its tiles, in the order of summands. ``targets`` are numbers of
    results, negative for rows that are none, 32 more than whole blocks of rows. ``packed`` is the
    plan of :mod:`daskdl.kernels.int8.block` before any columns.
    """
    depth, c = words.shape[1] * COLUMNS * 4, address(sums)
    # A few panels, which stay in L2, multiply a block of rows before the next one.
    together = max(1, PANELS // depth)
    for group in range(begin, end, together):
        after = min(group + together, end)
        for block in range(-(-here // BLOCK)):
            rows = a + block * BLOCK * pitch
            for panel in range(group, after):
                b, remaining = address(words) + panel * depth, filters - panel * COLUMNS
                for side in range(0, 4 * min(COLUMNS, remaining), 2 * LINE):
                    _block(sums, offsets, rows, pitch, b + side, c + side, block == 0, tiles)
                _finish(c, block, panel, targets, columns, packed, remaining)


@jit
def _block(like, offsets, a, pitch, b, c, cold, tiles):
    """Write the products of tiles to 32 x 32 sums at c, in rows of ``COLUMNS``."""
    count, line = offsets.size, COLUMNS * 4
    if tiles == AMX and cold:
        multiply_cold_bytes(
            address(offsets), count, a, a + SIDE * pitch, pitch, b, b + LINE, SIDE * line, line, c,
            line, False,
        )  # fmt: skip
        return
    if tiles == AMX:
        multiply_bytes(
            address(offsets), count, a, a + SIDE * pitch, pitch, b, b + LINE, SIDE * line, line, c,
            line, False,
        )  # fmt: skip
        return
    for row in range(BLOCK):
        for column in range(BLOCK):
            to = c + row * line + column * 4
            total = np.int32(0)
            for k in range(count * SIDE):
                tile, word = divmod(k, SIDE)
                x = number(like, a + row * pitch + offsets[tile] + word * 4)
                w = number(like, b + k * line + column * 4)
                for shift in range(0, 32, 8):
                    total += np.int32((x >> shift) & 255) * np.int8(w >> shift)
            put_number(like, to, np.int32(total))


@jit
def _finish(c, block, panel, targets, columns, packed, remaining):
    """Finish the sums of a block of rows and a panel."""
    (
        apart, y, residual, kind_y, kind_residual, zero, scale, low, high, inverse, zero_y, least,
        most,
    ) = packed  # fmt: skip
    first, places = panel * COLUMNS, address(targets) + block * BLOCK * 8
    plan = (
        apart, y + first * (1 if kind_y == BYTES else 4),
        residual + first * (1 if kind_residual == BYTES else 4), kind_y, kind_residual, zero, scale,
        low, high, inverse, zero_y, least, most, remaining,
    )  # fmt: skip
    of_columns = address(columns) + first * 4
    if remaining >= COLUMNS:
        finish(c, BLOCK, places, of_columns, plan)
    else:
        finish_narrow(c, BLOCK, places, of_columns, plan)
