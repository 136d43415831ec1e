"""Sums of products of bytes by AMX's tiles, which other kernels finish.

A tile needs equally spaced rows. So the numbers of a result's taps are copied into one row, with
zeros up to whole tiles, once for all panels. Panels are the same as for other products: their lines
of 16 words already are tiles of B.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from daskdl.kernels.int8.arithmetic import way_of
from daskdl.kernels.int8.block import COLUMNS, ROWS
from daskdl.kernels.products.microkernel import LANES, address, keep
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
)
from daskdl.kernels.tiles.rows import clear_bytes, copy_bytes

#: Rows whose sums wait to be finished: whole blocks of tiles and of ``ROWS``. They stay in L1.
TOGETHER = 16 * ROWS
#: Bytes of rows of A that are copied together: they stay in L2 (2 MB) with some panels.
COPIED = 512 << 10
#: Ways to make sums: without tiles, by AMX, and in the same tiles without AMX.
NONE, AMX, ORDINARY = 0, 1, 2


@cache
def usable() -> int:
    """Return ``AMX`` if it is permitted and multiplies bytes correctly, else ``NONE``."""
    if LANES != SIDE or way_of(LANES) != "vnni" or not permitted():
        return NONE
    draw = np.random.default_rng(0)
    rows = draw.integers(0, 256, (TOGETHER, 3 * LINE), np.uint8)
    words = draw.integers(-(2**31), 2**31, (1, 3 * SIDE, COLUMNS), np.int32)
    by_amx, without = np.zeros((2, TOGETHER, COLUMNS), np.int32)
    _sums(rows, words, by_amx, AMX)
    _sums(rows, words, without, ORDINARY)
    return AMX if trusted.agree(by_amx, without) else NONE


@jit
def _sums(rows, words, sums, tiles):
    if tiles == AMX:
        begin_tiles()
    make_sums(rows, words, np.arange(3) * LINE, 0, 0, TOGETHER, sums, tiles)
    if tiles == AMX:
        end_tiles()


@jit
def copy_rows(table, taps, whole, here, width, rows):
    """Copy ``width`` bytes of each tap of a result into one row; see ``_write_table``."""
    pitch = rows.shape[1]
    for i in range(here):
        to = address(rows) + i * pitch
        for tap in range(taps):
            copy_bytes(table[tap * whole + i], to, width)
            to += width
        clear_bytes(to, pitch - taps * width)


@jit
def make_sums(rows, words, offsets, panel, first, count, sums, tiles):
    """Write the sums of ``count`` rows and a panel's columns; AMX uses the tiles' offsets."""
    depth, pitch, line = words.shape[1], rows.shape[1], COLUMNS * 4
    if tiles == AMX:
        for i in range(0, count, BLOCK):
            a = address(rows) + (first + i) * pitch
            for side in range(0, line, 2 * LINE):
                b = address(words) + panel * depth * line + side
                multiply_bytes(
                    address(offsets), offsets.size, a, a + SIDE * pitch, pitch, b, b + LINE,
                    SIDE * line, line, address(sums) + i * line + side, line, False,
                )  # fmt: skip
        keep(offsets)
        return
    for i in range(count):
        for column in range(COLUMNS):
            total = np.int32(0)
            for k in range(depth):
                word = words[panel, k, column]
                for j in range(4):
                    total += np.int32(rows[first + i, 4 * k + j]) * np.int8(word >> 8 * j)
            sums[i, column] = total
