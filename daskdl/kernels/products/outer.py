"""The product ``a.T @ b`` of two matrices of many rows, as gradients to weights are.

A BLAS puts both in an order of its own, which takes a fifth of the time where the result is small
against them. Here the numbers of ``a`` are read where they lie, since a row of it is what the
innermost product of convolutions wants, one number a result's row; of ``b`` a panel's columns are
copied side by side, to be used for all of ``a``.
"""

from __future__ import annotations

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
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.scratch import scratch
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of, n_parts, threads

Array = NDArray[np.float32]

#: Numbers of a row of ``a`` up to which this is quicker than a BLAS: those of one column then lie
#: so close that the processor fetches them ahead. Up to twice as many if a row of ``b`` is no wider
#: than this.
WIDEST = 512
#: Rows that are summed up at a time; their panel fills a part of L1.
TOGETHER = 192
#: Bytes of ``a`` in these rows, at most: they stay in L2 from one panel to the next.
BLOCK = 256 << 10


def serves(a: NDArray[np.floating], b: NDArray[np.floating]) -> bool:
    """Return whether ``product(a, b)`` is for these: float32 matrices, long and not wide."""
    return (
        a.dtype == b.dtype == np.float32
        and a.ndim == b.ndim == 2
        and a.flags.c_contiguous
        and b.flags.c_contiguous
        and a.shape[1] <= (WIDEST if b.shape[1] > WIDEST else 2 * WIDEST)
        and len(a) == len(b) >= max(a.shape[1], b.shape[1], TOGETHER)
    )


def product(a: Array, b: Array) -> Array:
    """Return ``a.T @ b``; a (K, M) and b (K, N) as :func:`serves` wants them -> (M, N)."""
    (k, m), n = a.shape, b.shape[1]
    if n <= WIDEST and _computed(n, m) < _computed(m, n):  # fewer with a copied, and b read
        return np.ascontiguousarray(product(b, a).T)
    c = np.empty((m, n), np.float32)
    columns = scratch("outer columns", (threads(), TOGETHER, COLUMNS), np.float32)
    long = k >= 4 * max(m, n)  # then parts are of what is summed up
    items, least = (k, least_of(2 * m * n)) if long else (-(-n // COLUMNS), 1)
    more = np.empty((n_parts(items, least) - 1 if long else 0, m, n), np.float32)
    matrices = (flat(x).reshape(x.shape) for x in (a, b))
    over_range(_product, items, least, *matrices, c, more, columns, long)
    for other in more:
        c += other
    return c


def _computed(read: int, copied: int) -> int:
    """Return the numbers that are computed where one matrix is read and the other one copied.

    They are more than a result has if its columns end within a panel: 200 take seven panels of 32.
    """
    return -(-read // ROWS) * ROWS * -(-copied // COLUMNS) * COLUMNS


@jit
def _product(a, b, c, more, columns, long, which, start, stop):
    """Sum up the rows ``start`` to ``stop``, or, if not ``long``, compute so many panels."""
    n = c.shape[1]
    if not long:
        _sum(a, b, c, columns[which], 0, a.shape[0], start * COLUMNS, min(n, stop * COLUMNS))
    else:
        _sum(a, b, more[which - 1] if which else c, columns[which], start, stop, 0, n)


@jit
def _sum(a, b, c, columns, start, stop, left, right):
    """Write, to the columns ``left`` to ``right`` of c, the product of some rows of a and of b."""
    (m, n), size = c.shape, a.itemsize
    row = m * size
    block = max(32, min(TOGETHER, BLOCK // row))
    table, targets = np.empty(SEGMENT, np.int64), np.empty(ROWS, np.int64)
    spare = np.empty((ROWS, COLUMNS), a.dtype)
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
                    own = min(group + i, m - 1)
                    table[i] = address(a) + first * row + own * size
                    if width == COLUMNS:
                        targets[i] = address(c) + (own * n + begin) * size
                    else:
                        targets[i] = address(spare) + (own - group) * line
                multiply(
                    a, at_table, 1, row, at_columns, line, at_targets, 0, add and width == COLUMNS
                )  # fmt: skip
                # Of the next block's rows a share with each product: they come while it computes.
                for k in range(turn * following // turns, (turn + 1) * following // turns):
                    fetch_all(address(a) + (after + k) * row, row)
                    fetch_all(address(b) + ((after + k) * n + left) * size, wide)
                turn += 1
                if width < COLUMNS:
                    for i in range(min(ROWS, m - group)):
                        for j in range(width):
                            before = c[group + i, begin + j] if add else a.dtype.type(0)
                            c[group + i, begin + j] = before + spare[i, j]
