"""Tiles of attention's matrices: copy rows, pack them for products, and multiply them.

All arrays here hold rows that are filled with zeros up to whole vectors. The dtype of an array
``kind`` selects the products: float32 or float64 for their own, uint32 for pairs of bfloat16
(:mod:`daskdl.kernels.products.bfloat16`), int32 for pairs whose sums have the order of AMX's tiles;
its number is 1 if AMX computes them.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from daskdl.kernels.products.bfloat16 import word_of
from daskdl.kernels.products.microkernel import (
    COLUMNS,
    FEW_ROWS,
    LANES,
    ROWS,
    SEGMENT,
    WIDEST_COLUMNS,
    address,
    copy,
    keep,
    multiply,
    multiply_few,
    number,
    put_number,
)
from daskdl.kernels.products.ordered import block_of
from daskdl.kernels.products.packing import transpose
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.tiles.instructions import begin_tiles, end_tiles
from daskdl.kernels.tiles.panels import multiply_rows, whole_tiles

#: Largest number of columns of a tile of scores: a panel of 256 summands (32 kB) fits L1.
KEYS = 256
#: Padding of a tile's rows, a cache line of float32: else the numbers of a column would share a
#: few sets of the cache.
APART = 16


@jit
def filled(columns):
    """Return a number of columns, rounded up to whole panels."""
    return -(-columns // WIDEST_COLUMNS) * WIDEST_COLUMNS


@jit
def keys_of_tile(keys):
    """Return the number of keys of a tile: tiles are about equal, whole panels on any processor."""
    each = block_of(keys, KEYS)
    return max(WIDEST_COLUMNS, -(-each // WIDEST_COLUMNS) * WIDEST_COLUMNS)


@jit
def rows_from(like, place, row, count, width, rows):
    """Copy ``count`` rows of ``width`` numbers from an address; fill the rest of a row with 0."""
    size, whole = like.itemsize, width // COLUMNS * COLUMNS
    for r in range(count):
        source, target = place + r * row, address(rows) + r * rows.shape[1] * size
        for c in range(0, whole, COLUMNS):
            copy(like, source + c * size, target + c * size)
        for c in range(whole, width):
            rows[r, c] = number(like, source + c * size)
        for c in range(width, rows.shape[1]):
            rows[r, c] = 0
    for r in range(count, min(filled(count), rows.shape[0])):
        for c in range(rows.shape[1]):
            rows[r, c] = 0
    keep(rows)


@jit
def rows_to(like, rows, count, width, place, row):
    """Copy rows to an address."""
    size, whole = like.itemsize, width // COLUMNS * COLUMNS
    for r in range(count):
        source, target = address(rows) + r * rows.shape[1] * size, place + r * row
        for c in range(0, whole, COLUMNS):
            copy(like, source + c * size, target + c * size)
        for c in range(whole, width):
            put_number(like, target + c * size, rows[r, c])
    keep(rows)


def depth_of(kind, columns):
    """Return the number of summands of ``columns`` columns; a pair is one summand."""
    raise NotImplementedError("for numba functions")


@overload(depth_of, inline="always")
def _depth_of(kind, columns):
    if kind.dtype == types.uint32:
        return lambda kind, columns: (columns + 1) // 2
    if kind.dtype == types.int32:
        return lambda kind, columns: whole_tiles(columns)
    return lambda kind, columns: columns


def along(kind, rows, count, words):
    """Return rows for a product's A: unchanged, or pairs of neighbours in ``words``."""
    raise NotImplementedError("for numba functions")


@overload(along)
def _along(kind, rows, count, words):
    if kind.dtype not in (types.uint32, types.int32):
        return lambda kind, rows, count, words: rows

    def implementation(kind, rows, count, words):
        bits, halves = rows.view(np.uint32), words.view(np.uint16)
        for r in range(count):
            for c in range(rows.shape[1]):
                halves[r, c] = word_of(bits[r, c])
        return words

    return implementation


def across(kind, rows, count, words):
    """Return rows as summands: unchanged, or pairs of rows in ``words``."""
    raise NotImplementedError("for numba functions")


@overload(across)
def _across(kind, rows, count, words):
    if kind.dtype not in (types.uint32, types.int32):
        return lambda kind, rows, count, words: rows

    def implementation(kind, rows, count, words):
        bits = rows.view(np.uint32)
        for r in range(count // 2):
            for c in range(rows.shape[1]):
                low, high = word_of(bits[2 * r, c]), word_of(bits[2 * r + 1, c])
                words[r, c] = low | (high << np.uint32(16))
        if count % 2:
            for c in range(rows.shape[1]):
                words[count // 2, c] = word_of(bits[count - 1, c])
        for r in range((count + 1) // 2, min(depth_of(kind, count), words.shape[0])):
            for c in range(rows.shape[1]):
                words[r, c] = 0
        return words

    return implementation


@jit
def panels_of(kind, rows, count, columns, panels, first):
    """Put rows, summands of a product's B, into panels from the summand ``first`` on."""
    line = COLUMNS * kind.itemsize
    for j in range(columns // COLUMNS):
        to = address(panels) + (j * panels.shape[1] + first) * line
        source = address(rows) + j * line
        for r in range(count):
            copy(kind, source + r * rows.shape[1] * kind.itemsize, to + r * line)
    keep(rows)
    keep(panels)


@jit
def turned_panels_of(kind, rows, count, depth, panels, first):
    """Put rows, columns of a product's B, into panels from the panel ``first`` on."""
    size, line = kind.itemsize, COLUMNS * kind.itemsize
    row = rows.shape[1] * size
    for j in range(-(-count // COLUMNS)):
        for c in range(0, depth, LANES):
            for half in range(0, COLUMNS, LANES):
                source = address(rows) + (j * COLUMNS + half) * row + c * size
                to = address(panels) + ((first + j) * panels.shape[1] + c) * line
                transpose(kind, source, row, to + half * size, line)
    keep(rows)
    keep(panels)


@jit
def table_for(rows):
    """Return an array for the addresses of :func:`multiplied`, for up to ``rows`` rows."""
    groups = -(-rows // ROWS)
    return np.empty((2, groups, SEGMENT), np.int64)


@jit
def begin(kind):
    """Prepare this thread for :func:`multiplied`."""
    if uses_amx(kind):
        begin_tiles()


@jit
def end(kind):
    """Release what :func:`begin` took."""
    if uses_amx(kind):
        end_tiles()


def uses_amx(kind):
    """Return whether AMX multiplies numbers of a kind."""
    raise NotImplementedError("for numba functions")


@overload(uses_amx, inline="always")
def _uses_amx(kind):
    if kind.dtype == types.int32:
        return lambda kind: kind[0] != 0
    return lambda kind: False


def multiplied(kind, sizes, a, a_row, a_step, panels, apart, c, c_row, add, table):
    """Compute ``c = a @ b``, or ``c += a @ b``; see :func:`_by_vectors`."""
    raise NotImplementedError("for numba functions")


@overload(multiplied)
def _multiplied(kind, sizes, a, a_row, a_step, panels, apart, c, c_row, add, table):
    if kind.dtype == types.int32:
        return lambda kind, sizes, a, a_row, a_step, panels, apart, c, c_row, add, table: (
            multiply_rows(
                kind[0] != 0, sizes, a, a_row, a_step, panels, apart, c, c_row, add, table
            )
        )
    return lambda kind, sizes, a, a_row, a_step, panels, apart, c, c_row, add, table: _by_vectors(
        kind, sizes, a, a_row, a_step, panels, apart, c, c_row, add, table
    )


@jit
def _by_vectors(kind, sizes, a, a_row, a_step, panels, apart, c, c_row, add, table):
    """Compute ``c = a @ b``, or ``c += a @ b`` if ``add``, from packed numbers.

    ``sizes`` are rows, panels and summands. ``a``, ``panels`` and ``c`` are addresses of first
    numbers. In bytes, ``a_row`` and ``c_row`` are steps from row to row, ``a_step`` along a row of
    ``a``, and ``apart`` from panel to panel. Rows of ``c`` are whole panels.
    """
    rows, count, depth = sizes
    line = COLUMNS * kind.itemsize
    entries = table.reshape(-1)
    groups = -(-rows // ROWS)
    other = table.shape[1] * SEGMENT
    for group in range(groups):
        at = group * SEGMENT
        for i in range(ROWS):  # after the last row, repeat it
            row = min(group * ROWS + i, rows - 1)
            entries[at + i] = a + row * a_row
            entries[other + at + i] = c + row * c_row
        entries[at + ROWS], entries[at + ROWS + 1] = 0, depth
    start = address(table)
    large = groups - 1 if 0 < rows - (groups - 1) * ROWS <= FEW_ROWS else groups
    for j in range(count):
        panel = panels + j * apart
        for group in range(groups):
            entry = start + group * SEGMENT * 8
            to = entry + other * 8
            if group < large:
                multiply(kind, entry, 1, a_step, panel, line, to, j * line, add)
            else:
                multiply_few(kind, entry, 1, a_step, panel, line, to, j * line, add)
    keep(table)
