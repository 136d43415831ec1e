"""Rows times fixed weights, by tall blocks: pointwise convolutions in inference.

The rows of a 1x1 convolution without strides are contiguous, so that no table of addresses is
needed. Blocks are as tall as registers allow: the start and end of a block take as long as some
twenty summands, which for 16 to 64 channels is much. Meanwhile the lines that the next rows read
and write are prefetched to L2: a store to a missing line would wait until the line is read. Sums
have the order of :mod:`daskdl.kernels.convolution.direct`, and so the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.finish import Finish
from daskdl.kernels.products.microkernel import COLUMNS, DEPTH, LANES, address
from daskdl.kernels.products.tall import FETCHED, TALL, multiply_block
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import work_over_range
from daskdl.kernels.runtime.threads import least_of, threads

Array = NDArray[np.floating]

#: Most rows for which threads may share the weights instead of the rows.
FEW = 512
#: Bytes of the rows that all panels multiply in turn: they stay in L2.
KEPT = 192 << 10
#: Bytes of weights that stay in L2 with a few blocks of rows, and the number of these blocks.
SMALL, FEW_BLOCKS = 640 << 10, 8


def work_of(
    x: NDArray[Any], panels: NDArray[Any], y: Array, finish: Finish
) -> Callable[[], object]:
    """Return a function that writes ``x @ weights`` to y, and finishes it, at each call.

    x (rows, at least K) and y (rows, M) are C-contiguous; for the weights' panels (panels, K,
    COLUMNS) see :mod:`daskdl.kernels.products.packing`. If x and panels are uint32, they are pairs
    of bfloat16.
    """
    rows, depth = x.shape
    blocks, work = -(-rows // TALL), 2.0 * depth * COLUMNS
    if by_panels(rows, len(panels)):
        least = least_of(work * rows)
        return work_over_range(product_of_panels, len(panels), least, x, panels, y, finish)
    least = least_of(work * TALL * len(panels))
    return work_over_range(_by_rows, blocks, least, x, panels, y, finish)


def by_panels(rows: int, panels: int) -> bool:
    """Return whether threads share the weights, which are then read once, instead of the rows."""
    return rows <= FEW and _idle(panels) <= _idle(-(-rows // TALL))


def _idle(items: int) -> float:
    """Return the share of the threads' time without work if they share ``items`` items."""
    count = min(threads(), items)
    return 1 - items / (-(-items // count) * count)


@jit
def _by_rows(x, panels, y, finish, which, start, stop):
    """Compute the blocks of rows ``start`` to ``stop``."""
    first, end = start * TALL, min(stop * TALL, x.shape[0])
    most = tile_of(panels.shape[0] * panels.shape[1], panels.shape[1]) * TALL
    parts = -(-(end - first) // most)
    length = -(-(end - first) // (parts * TALL)) * TALL
    for begin in range(first, end, length):
        last = min(begin + length, end)
        following = min(last + length, end)
        product(x, 0, panels, y, finish, begin, last, 0, panels.shape[0], following)


@jit
def tile_of(summands, depth):
    """Return the number of blocks of rows in a tile, which is multiplied panel by panel.

    It is small if the weights, ``summands`` rows of panels, stay in L2, so that the other operands
    stay there, too. Otherwise it is the number of blocks that fit L2.
    """
    if summands * COLUMNS * 4 <= SMALL:
        return FEW_BLOCKS
    return max(4, KEPT // (4 * depth * TALL))


@jit
def product_of_panels(x, panels, y, finish, which, start, stop):
    """Compute the columns of the panels ``start`` to ``stop``."""
    product(x, 0, panels, y, finish, 0, x.shape[0], start, stop, x.shape[0])


@jit
def product(x, before, panels, y, finish, first, end, start, stop, following):
    """Compute the rows ``first`` to ``end`` of some panels' columns; x begins with row ``before``.

    The rows from ``end`` to ``following`` are computed next.
    """
    cuts, row = cuts_of(panels.shape[1]), x.shape[1] * x.itemsize
    from_x = address(x) + (first - before) * row
    ahead = soon(from_x + (end - first) * row, row, y, finish, end, following)
    in_slices(x, from_x, row, cuts, panels, y, finish, first, end, start, stop, ahead)


@jit
def cuts_of(depth):
    """Return the first summand of each part, after which sums go to memory, and the last's end."""
    slices = -(-depth // DEPTH)
    length = -(-depth // slices)
    cuts = np.empty(slices + 1, np.int64)
    for s in range(slices):
        cuts[s] = s * length
    cuts[slices] = depth
    return cuts


@jit
def soon(x, row, y, finish, first, end):
    """Return address and bytes of some rows of x, of the residual and of y.

    ``x`` is the address of these rows, ``row`` the bytes of each.
    """
    step, count = y.shape[1] * y.itemsize, end - first
    residual = count * step if address(finish[1]) != address(y) else 0
    return (
        (x, count * row),
        (address(finish[1]) + first * step, residual),
        (address(y) + first * step, count * step),
    )


@jit
def in_slices(x, a, a_step, cuts, panels, y, finish, first, end, start, stop, ahead):
    """Compute the rows ``first`` to ``end`` of the columns of the panels ``start`` to ``stop``.

    ``x`` has the dtype of rows and panels; rows begin at address ``a``, ``a_step`` bytes apart. For
    ``cuts`` see :func:`cuts_of`. Meanwhile ``ahead``, from :func:`soon`, is prefetched to L2, and
    then the next panel.
    """
    depth, width, size = panels.shape[1], y.shape[1], x.itemsize
    rows, fetched = -(-(end - first) // TALL), 0
    for s in range(cuts.size - 1):
        here, add, last = cuts[s], s > 0, s + 2 == cuts.size
        length = cuts[s + 1] - here
        for j in range(start, stop):
            panel = address(panels) + (j * depth + here) * COLUMNS * size
            place, step = _part(ahead, fetched, length * FETCHED, panel + depth * COLUMNS * size)
            _panel(
                x, a + here * size, a_step, length, panel, y, j * COLUMNS * size, add, last, finish,
                first, end, width - j * COLUMNS, place, step,
            )  # fmt: skip
            fetched += length * FETCHED * rows


@jit
def _part(ahead, fetched, step, rest):
    """Return the address to prefetch next, and its step from block to block, after some bytes.

    If all of ``ahead`` was fetched, it is ``rest``, the next panel, for each block.
    """
    for place, n_bytes in ahead:
        if fetched < n_bytes:
            return place + fetched, step
        fetched -= n_bytes
    return rest, 0


@jit
def _panel(x, a, a_step, depth, b, y, offset, add, last, finish, first, end, columns, ahead, step):
    """Compute some rows of one panel's columns; prefetch ``step`` bytes to L2 with each block."""
    y_step = y.shape[1] * y.itemsize
    bias, residual = address(finish[0]) + offset, address(finish[1]) - address(y)
    low, high = finish[2][0], finish[2][1]
    kind = 0 if columns >= COLUMNS else 1 if columns > LANES else 2
    for row in range(first, end, TALL):
        count = min(TALL, end - row)
        plan = depth, count, a_step, y_step, add, last, bias, residual, low, high, columns
        multiply_block(x, a, b, address(y) + offset + row * y_step, ahead, plan, kind)
        a, ahead = a + TALL * a_step, ahead + step
