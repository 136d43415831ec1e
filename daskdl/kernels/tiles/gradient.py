"""The gradient to weights in the order of AMX's tiles: sums over positions, 32 at a time.

The positions are as in :mod:`daskdl.kernels.tiles.positions`, over all images; positions without
a result have a gradient of zero. Pairs of positions of the results' gradients are transposed to
tiles of A. Pairs of neighbouring pixels already are tiles of B: pairs that begin at even positions
and, for taps at an odd distance, pairs that begin at odd ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.microkernel import address, keep
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import scratch
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import threads
from daskdl.kernels.tiles.instructions import (
    BLOCK,
    LINE,
    SIDE,
    TILE,
    begin_tiles,
    end_tiles,
)
from daskdl.kernels.tiles.ordered import multiply_tiles
from daskdl.kernels.tiles.positions import Positions
from daskdl.kernels.tiles.rows import addresses_of, pair_rows
from daskdl.kernels.tiles.trusted import usable
from daskdl.kernels.tiles.weights import NUMBERS, turn

Array = NDArray[np.float32]

#: Bytes of pairs that are made before they are multiplied.
PAIRED = 3 << 20
#: Least positions of these pairs: sums are read and written once for them.
LEAST = 1024


def weight_gradient(x: NDArray[Any], dy: NDArray[Any], positions: Positions) -> Array:
    """Return the sums (out, taps, in) over all windows of dy times each tap's pixel of x.

    x (N, H, W, in) and dy (N, rows, columns, out) are C-contiguous and both float32, or uint16:
    bfloat16 numbers. Positions are of the windows on x.
    """
    filters, channels = dy.shape[3], x.shape[3]
    taps, phases, count = positions.taps, positions.phases, positions.length
    dw = np.zeros((filters, len(taps), channels), np.float32)
    by_filters, by_channels = -(-filters // BLOCK), -(-channels // BLOCK)
    low, around = positions.low // 2 * 2, positions.high - positions.low // 2 * 2
    odd = bool((taps[:, 1] % 2).any())
    size = 2 * BLOCK * (by_filters + by_channels * len(phases) * (1 + odd))
    length = min(max(LEAST, PAIRED // size), count)
    length = -(-length // NUMBERS) * NUMBERS
    turned = scratch("tile gradients", (2 * by_filters, length // NUMBERS, TILE // 4), np.uint32)
    pairs = (length + around + 2) // 2 + 1
    shape = len(phases), 1 + odd, 2 * by_channels, pairs, SIDE
    paired = scratch("tile pairs", shape, np.uint32)
    rooms = scratch("tile block", (threads(), BLOCK, BLOCK), np.float32)
    results = np.array([[0, 0, dy.shape[1], dy.shape[2]]], np.int64)
    sizes = positions.sizes
    flat = sizes.copy()
    flat[3:5] = 1  # the results have no strides
    for first in range(0, count, length):
        over_range(_turn, 2 * by_filters, 1, dy, results[0], flat, first, turned)
        over_range(
            _pair, len(phases) * 2 * by_channels, 1, x, phases, sizes, first + low, 1 + odd, paired
        )
        over_range(
            _multiply, by_filters * by_channels, 1, turned, paired, taps, low, dw, rooms,
            usable(),
        )  # fmt: skip
    return dw


@jit
def _turn(dy, results, sizes, first, turned, which, start, stop):
    """Write tiles of A with 16 filters each, from all positions."""
    size, filters = dy.itemsize, dy.shape[3]
    places, room = np.empty(NUMBERS, np.int64), np.empty((SIDE, SIDE), np.uint32)
    for k in range(turned.shape[1]):
        addresses_of(dy, results, sizes, first + k * NUMBERS, places)
        for j in range(start, stop):
            offset, columns = j * SIDE * size, max(0, min(SIDE, filters - j * SIDE))
            for i in range(SIDE):
                lower, upper = places[2 * i], places[2 * i + 1]
                pair_rows(
                    dy, lower + offset if lower else 0, upper + offset if upper else 0,
                    address(room) + i * LINE, columns,
                )  # fmt: skip
            turn(turned, address(room), LINE, address(turned) + (j * turned.shape[1] + k) * TILE)
    keep(room)


@jit
def _pair(x, phases, sizes, first, parities, paired, which, start, stop):
    """Write pairs of positions, for 16 channels at a time."""
    size, channels, panels = x.itemsize, x.shape[3], paired.shape[2]
    count = paired.shape[3]
    places = np.empty(2 * count + 1, np.int64)
    for phase in range(start // panels, -(-stop // panels)):
        addresses_of(x, phases[phase], sizes, first, places)
        begin, end = max(0, start - phase * panels), min(panels, stop - phase * panels)
        for parity in range(parities):
            to = address(paired) + (phase * parities + parity) * panels * count * LINE
            for i in range(count):  # a pixel's channels are read in one go
                lower, upper = places[2 * i + parity], places[min(2 * i + parity + 1, 2 * count)]
                for j in range(begin, end):
                    offset = j * SIDE * size
                    pair_rows(
                        x, lower + offset if lower else 0, upper + offset if upper else 0,
                        to + (j * count + i) * LINE, max(0, min(SIDE, channels - j * SIDE)),
                    )  # fmt: skip
    keep(places)


@jit
def _multiply(turned, paired, taps, low, dw, rooms, amx, which, start, stop):
    """Add to the blocks of 32 filters and 32 channels ``start`` to ``stop``, of all taps."""
    filters, n_taps, channels = dw.shape
    tiles, parities, count = turned.shape[1], paired.shape[1], paired.shape[3]
    panels, room = paired.shape[2], rooms[which]
    table = np.empty(tiles, np.int64)
    for k in range(tiles):
        table[k] = k * TILE
    if amx:
        begin_tiles()
    for item in range(start, stop):
        i, j = divmod(item, panels // 2)
        upper = address(turned) + 2 * i * tiles * TILE
        rows, columns = min(BLOCK, filters - i * BLOCK), min(BLOCK, channels - j * BLOCK)
        whole = (rows == BLOCK) & (columns == BLOCK)
        for tap in range(n_taps):
            pair, parity = divmod(taps[tap, 1] - low, 2)
            panel = (taps[tap, 0] * parities + parity) * panels + 2 * j
            left = address(paired) + (panel * count + pair) * LINE
            right = left + count * LINE
            part = dw[i * BLOCK : i * BLOCK + rows, tap, j * BLOCK : j * BLOCK + columns]
            c, line = address(part), n_taps * channels * 4
            if not whole:
                room[:rows, :columns] = part
                c, line = address(room), BLOCK * 4
            multiply_tiles(
                amx, address(table), tiles, upper, upper + tiles * TILE, LINE, left, right, TILE,
                LINE, c, line, True,
            )  # fmt: skip
            if not whole:
                part[:] = room[:rows, :columns]
    if amx:
        end_tiles()
    keep(table)
