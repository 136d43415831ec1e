"""Products of float32 matrices; the order of sums depends on neither processor nor threads.

A number of the result is summed from its first summand to its last, in equal blocks of at most
:data:`TOGETHER`, by :mod:`daskdl.kernels.products.microkernel`. The rows and columns that are
computed together make no difference. One matrix is read in place; the other is packed, some columns
for all rows (K. Goto and R. van de Geijn, 2008).
"""

from __future__ import annotations

import numpy as np

from daskdl.kernels.products.microkernel import (
    COLUMNS,
    FEW_ROWS,
    LANES,
    ROWS,
    SEGMENT,
    address,
    aligned,
    copy,
    keep,
    multiply,
    multiply_few,
    multiply_half,
    number,
    put_number,
)
from daskdl.kernels.products.packing import transpose
from daskdl.kernels.runtime.jit import jit

#: Most summands before the sum goes to memory; their panel (28 kB) stays in L1.
TOGETHER = 224
#: Rows whose summands (112 kB) stay in L2 from one panel to the next.
ROWS_TOGETHER = 126
#: Bytes of panels that stay in L2, so that a sum's next block is added before the sum leaves L2.
PANELS = 1 << 19
#: The same if one block of summands of all columns is larger. Then some panels at a time, at least
#: ``LEAST``, are packed, and A is read anew for them.
WIDE, LEAST = 1 << 20, 8


@jit
def block_of(summands, most):
    """Return the length of blocks of summands: blocks are about equal, none above ``most``."""
    return -(-summands // max(1, -(-summands // most)))


@jit
def room_for(like, columns, summands):
    """Return memory for :func:`product` of up to ``columns`` columns and ``summands`` summands."""
    size, blocks = TOGETHER * COLUMNS * like.itemsize, -(-summands // TOGETHER)
    panels, kept = -(-columns // COLUMNS), PANELS
    if panels * size > WIDE:
        panels, kept = max(LEAST, WIDE // (blocks * size)), WIDE
    blocks = max(1, min(blocks, kept // (panels * size)))
    lines = aligned(like, blocks * panels * TOGETHER * COLUMNS)
    return (
        lines.reshape(blocks, panels, TOGETHER, COLUMNS),
        np.empty(SEGMENT, np.int64),
        np.empty(ROWS, np.int64),
        np.empty((ROWS, COLUMNS), like.dtype),
    )


@jit
def product(like, sizes, a, a_row, a_step, b, b_row, b_step, c, c_row, add, room):
    """Compute ``c = a @ b``, or ``c += a @ b`` if ``add``, of matrices at some addresses.

    ``like`` has the dtype of all numbers; sizes are M, N and K. ``a``, ``b`` and ``c`` are the
    addresses of matrices (M, K), (K, N) and (M, N); ``_row`` and ``_step`` are the bytes from row
    to row and along a row. One step of b is the size of a number; rows of c are contiguous.
    ``room`` is from :func:`room_for`.
    """
    m, n, k = sizes
    wide = room[0].shape[1] * COLUMNS
    for left in range(0, n, wide):
        some = m, min(wide, n - left), k
        from_b, to = b + left * b_step, c + left * like.itemsize
        _product(like, some, a, a_row, a_step, from_b, b_row, b_step, to, c_row, add, room)


@jit
def _product(like, sizes, a, a_row, a_step, b, b_row, b_step, c, c_row, add, room):
    """Compute :func:`product` for as many columns as there is room for."""
    panels, table, targets, spare = room
    m, n, k = sizes
    line = COLUMNS * like.itemsize
    count = -(-n // COLUMNS)
    at, to, aside = address(table), address(targets), address(spare)
    together = max(1, block_of(k, TOGETHER))
    at_once = len(panels) * together
    for some in range(0, k, at_once):
        last = min(k, some + at_once)
        for first in range(some, last, together):
            depth, block = min(together, k - first), panels[(first - some) // together]
            _put_in_order(like, b + first * b_row, b_row, b_step, depth, n, block)
        for begin in range(0, m, ROWS_TOGETHER):
            stop = min(m, begin + ROWS_TOGETHER)
            for first in range(some, last, together):
                more = add or first > 0
                table[ROWS], table[ROWS + 1] = 0, min(together, k - first)
                for j in range(count):
                    width = min(COLUMNS, n - j * COLUMNS)
                    panel = address(panels[(first - some) // together, j])
                    for row in range(begin, stop, ROWS):
                        for i in range(ROWS):  # after the last row, repeat it
                            row_of = min(row + i, stop - 1)
                            table[i] = a + row_of * a_row + first * a_step
                            if width == COLUMNS:
                                targets[i] = c + row_of * c_row + j * line
                            else:
                                targets[i] = aside + (row_of - row) * line
                        whole = more and width == COLUMNS
                        if width <= LANES:
                            multiply_half(like, at, 1, a_step, panel, line, to, 0, False)
                        elif stop - row > FEW_ROWS:
                            multiply(like, at, 1, a_step, panel, line, to, 0, whole)
                        else:
                            multiply_few(like, at, 1, a_step, panel, line, to, 0, whole)
                        if width < COLUMNS:
                            for i in range(min(ROWS, stop - row)):
                                place = c + (row + i) * c_row + j * line
                                _hand_on(like, aside + i * line, place, width, more)
    keep(panels)
    keep(spare)


@jit
def _put_in_order(like, b, b_row, b_step, depth, n, panels):
    """Write ``depth`` rows of b to panels of ``COLUMNS`` numbers, the last filled with zeros."""
    size, line = like.itemsize, COLUMNS * like.itemsize
    for j in range(-(-n // COLUMNS)):
        width = min(COLUMNS, n - j * COLUMNS)
        source, to = b + j * COLUMNS * b_step, address(panels) + j * TOGETHER * line
        if width == COLUMNS and b_step == size:
            for r in range(depth):
                copy(like, source + r * b_row, to + r * line)
            continue
        done = 0
        if width == COLUMNS and b_row == size:
            done = depth // LANES * LANES
            for r in range(0, done, LANES):
                for half in range(0, COLUMNS, LANES):
                    transpose(
                        like, source + half * b_step + r * size, b_step,
                        to + r * line + half * size, line,
                    )  # fmt: skip
        for r in range(done, depth):
            for column in range(width):
                value = number(like, source + r * b_row + column * b_step)
                put_number(like, to + r * line + column * size, value)
            for column in range(width, COLUMNS):
                panels[j, r, column] = 0


@jit
def _hand_on(like, source, to, width, more):
    """Write, or add if ``more``, some contiguous numbers."""
    for at in range(0, width * like.itemsize, like.itemsize):
        value = number(like, source + at)
        put_number(like, to + at, number(like, to + at) + value if more else value)


@jit
def add_product(a, b, c, room):
    """Compute ``c += a @ b`` inside a numba function; arrays (M, K), (K, N) and (M, N)."""
    (a_row, a_step), (b_row, b_step) = a.strides, b.strides
    sizes = c.shape[0], c.shape[1], b.shape[0]
    operands = address(a), a_row, a_step, address(b), b_row, b_step
    product(c, sizes, *operands, address(c), c.strides[0], True, room)
    keep(a)
    keep(b)
    keep(c)
