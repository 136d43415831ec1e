"""Weights as tiles: rounded, in the order in which products read them.

A tile of B has 16 pairs of summands of 16 columns. Panels are (panels, tiles of summands, 2, 256)
words: 32 columns each, the last filled with zeros.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.bfloat16 import round_row
from daskdl.kernels.products.microkernel import LANES, address, keep
from daskdl.kernels.products.packing import transpose
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty, scratch
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of
from daskdl.kernels.tiles.instructions import BLOCK, LINE, SIDE, TILE
from daskdl.kernels.tiles.rows import fill_bytes, pair_rows

Array = NDArray[np.float32]
Panels = NDArray[np.uint32]

#: Numbers of a row of a tile.
NUMBERS = 2 * SIDE


def panels_of(
    weight: Array, taps: NDArray[np.int64], by_input: bool = False, name: str = ""
) -> Panels:
    """Return C-contiguous weights (out, all taps, in) as panels; ``taps`` are the taps in order.

    With ``by_input`` the columns are input channels and the sum is over (tap, out), for the
    gradient to the input; otherwise the columns are filters and the sum is over (tap, in). With a
    name, panels are in memory that the thread reuses for the next panels of that name.
    """
    filters, _, channels = weight.shape
    width, summed = (channels, filters) if by_input else (filters, channels)
    shape = -(-width // BLOCK), len(taps) * -(-summed // NUMBERS), 2, TILE // 4
    panels = scratch(name, shape, np.uint32) if name else empty(shape, np.uint32)
    pack = _pack_by_input if by_input else _pack_by_filter
    over_range(pack, len(panels), least_of(8 * panels[0].size), weight, taps, panels)
    return panels


@jit
def turn(like, source, step, target):
    """Transpose 16 x 16 words of the dtype of ``like`` to a tile; ``step`` bytes a row."""
    for row in range(0, SIDE, LANES):
        for column in range(0, SIDE, LANES):
            transpose(
                like, source + row * step + column * 4, step, target + column * LINE + row * 4, LINE
            )


@jit
def _pack_by_filter(weight, taps, panels, which, start, stop):
    """Pack the panels ``start`` to ``stop``, of filters."""
    filters, all_taps, channels = weight.shape
    room = np.empty((SIDE, SIDE), np.uint32)
    target = address(panels) + start * panels.shape[1] * 2 * TILE
    for panel in range(start, stop):
        for tap in taps:
            for first in range(0, channels, NUMBERS):
                count = min(NUMBERS, channels - first)
                for half in range(2):
                    for i in range(SIDE):
                        row = panel * BLOCK + half * SIDE + i
                        to = address(room) + i * LINE
                        if row < filters:
                            place = (row * all_taps + tap) * channels + first
                            round_row(address(weight) + place * 4, count, to, SIDE)
                        else:
                            fill_bytes(to, LINE, 0)
                    turn(panels, address(room), LINE, target)
                    target += TILE
    keep(room)


@jit
def _pack_by_input(weight, taps, panels, which, start, stop):
    """Pack the panels ``start`` to ``stop``, of input channels."""
    filters, all_taps, channels = weight.shape
    step = all_taps * channels * 4
    target = address(panels) + start * panels.shape[1] * 2 * TILE
    for panel in range(start, stop):
        for tap in taps:
            for first in range(0, filters, NUMBERS):
                for half in range(2):
                    column = panel * BLOCK + half * SIDE
                    count = max(0, min(SIDE, channels - column))
                    place = address(weight) + ((first * all_taps + tap) * channels + column) * 4
                    for row in range(first, first + NUMBERS, 2):
                        upper = place + step if row + 1 < filters else 0
                        pair_rows(weight, place if row < filters else 0, upper, target, count)
                        place += 2 * step
                        target += LINE
