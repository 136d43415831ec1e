"""The product ``a.T @ b`` of two matrices of many rows, for gradients to weights.

A BLAS copies both into its own order; if the result is small against them, this takes a fifth of
the time. Here ``a`` is read in place: its rows fit the innermost product of convolutions, which
takes one number for each row of the result. Columns of ``b`` are packed into a panel, which serves
all of ``a``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.microkernel import (
    COLUMNS,
    ROWS,
    SEGMENT,
    address,
    copy,
    fetch_all,
    multiply,
)
from daskdl.kernels.products.ordered import TOGETHER, block_of
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import scratch
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import threads

Array = NDArray[np.float32]

#: Most parts of a product with many summands, and the least number of summands of each.
PARTS, PART = 16, 2048
#: Numbers of a row of ``a`` up to which this is faster than a BLAS: then the numbers of a column
#: are so close that the processor prefetches them. The limit is twice as high if rows of ``b`` are
#: no wider than this.
WIDEST = 512
#: Most bytes of the narrower matrix in a block's rows: they stay in L2 from panel to panel.
BLOCK = 256 << 10


def parts_of_sums(summands: int, rows: int, columns: int) -> int:
    """Return the number of parts of a product's sums, from its shape, not from the threads.

    It is above 1 only with many summands, when rows or columns are too few to be cut.
    """
    return max(1, min(PARTS, summands // PART)) if summands >= 4 * max(rows, columns) else 1


def serves(a: NDArray[np.floating], b: NDArray[np.floating]) -> bool:
    """Return whether ``product(a, b)`` takes these: float32 matrices, long and not wide."""
    return (
        a.dtype == b.dtype == np.float32
        and a.ndim == b.ndim == 2
        and a.flags.c_contiguous
        and b.flags.c_contiguous
        and a.shape[1] <= (WIDEST if b.shape[1] > WIDEST else 2 * WIDEST)
        and len(a) == len(b) >= max(a.shape[1], b.shape[1], TOGETHER)
    )


def product(a: Any, b: Any) -> Array:
    """Return ``a.T @ b`` (M, N); a (K, M) and b (K, N) as in :func:`serves`.

    Or they are uint32, pairs of bfloat16 of two rows; then the result is float32.
    """
    (k, m), n = a.shape, b.shape[1]
    if n <= WIDEST and _computed(n, m) < _computed(m, n):  # fewer if a is copied and b read
        return np.ascontiguousarray(product(b, a).T)
    c = np.empty((m, n), np.float32)
    columns = scratch("outer columns", (threads(), TOGETHER, COLUMNS), b.dtype)
    parts = parts_of_sums(k, m, n)
    more = np.empty((parts - 1, m, n), np.float32)
    matrices = (flat(x).reshape(x.shape) for x in (a, b))
    over_range(_product, parts if parts > 1 else -(-n // COLUMNS), 1, *matrices, c, more, columns)
    for other in more:
        c += other
    return c


def _computed(read: int, copied: int) -> int:
    """Return the numbers that are computed if one matrix is read in place and the other copied.

    They exceed the result if its columns end within a panel: 200 take seven panels of 32.
    """
    return -(-read // ROWS) * ROWS * -(-copied // COLUMNS) * COLUMNS


@jit
def _product(a, b, c, more, columns, which, start, stop):
    """Compute the parts ``start`` to ``stop`` of the sums, or these panels if there is one part."""
    (k, n), parts = b.shape, 1 + len(more)
    if parts == 1:
        _sum(a, b, c, columns[which], 0, k, start * COLUMNS, min(n, stop * COLUMNS))
        return
    for part in range(start, stop):
        first, last = k * part // parts, k * (part + 1) // parts
        _sum(a, b, more[part - 1] if part else c, columns[which], first, last, 0, n)


@jit
def _sum(a, b, c, columns, start, stop, left, right):
    """Write, to the columns ``left`` to ``right`` of c, the product of some rows of a and of b."""
    (m, n), size = c.shape, a.itemsize
    row = m * size
    # Summands of a block depend only on the shape, not on which matrix is read.
    block = block_of(stop - start, max(32, min(TOGETHER, BLOCK // (min(c.shape) * size))))
    table, targets = np.empty(SEGMENT, np.int64), np.empty(ROWS, np.int64)
    spare = np.empty((ROWS, COLUMNS), c.dtype)
    at_table, at_targets = address(table), address(targets)
    at_columns, line = address(columns), COLUMNS * size
    turns = -(-m // ROWS) * -(-(right - left) // COLUMNS)
    wide = (right - left) * size if block * (right - left) * size <= BLOCK else 0
    for first in range(start, stop, block):
        count, add, turn = min(block, stop - first), first > start, 0
        after, following = first + count, min(block, stop - first - count)
        table[ROWS], table[ROWS + 1] = 0, count
        for begin in range(left, right, COLUMNS):
            width = min(COLUMNS, right - begin)
            source = address(b) + (first * n + begin) * size
            for k in range(count):
                if width == COLUMNS:
                    copy(a, source + k * n * size, at_columns + k * line)
                else:
                    columns[k, :width] = b[first + k, begin:right]
            for group in range(0, m, ROWS):
                for i in range(ROWS):
                    row_of = min(group + i, m - 1)
                    table[i] = address(a) + first * row + row_of * size
                    if width == COLUMNS:
                        targets[i] = address(c) + (row_of * n + begin) * size
                    else:
                        targets[i] = address(spare) + (row_of - group) * line
                multiply(
                    a, at_table, 1, row, at_columns, line, at_targets, 0, add and width == COLUMNS
                )  # fmt: skip
                # Prefetch a share of the next block's rows with each product.
                for k in range(turn * following // turns, (turn + 1) * following // turns):
                    fetch_all(address(a) + (after + k) * row, row)
                    fetch_all(address(b) + ((after + k) * n + left) * size, wide)
                turn += 1
                if width < COLUMNS:
                    for i in range(min(ROWS, m - group)):
                        for j in range(width):
                            before = c[group + i, begin + j] if add else c.dtype.type(0)
                            c[group + i, begin + j] = before + spare[i, j]
