"""Rows from several arrays times fixed weights: 1x1 convolutions of joined channels.

The rows of a tile are gathered, normed and limited, and multiplied while they are in L2. So neither
joined nor normed channels are written to memory and read again. Sums have the order of
:mod:`daskdl.kernels.products.pointwise`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from daskdl.kernels.products import pointwise
from daskdl.kernels.products.finish import Finish
from daskdl.kernels.products.microkernel import COLUMNS, LANES, address
from daskdl.kernels.products.tall import TALL
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import BYTE, all_lanes, fma, load, store
from daskdl.kernels.runtime.memory import scratch
from daskdl.kernels.runtime.team import over_range, work_over_range
from daskdl.kernels.runtime.threads import least_of, threads

Array = NDArray[np.float32]

#: An array's channels are a multiple of this, to be read by whole vectors on all processors.
UNIT = 16
#: Bytes of a vector.
VECTOR = 4 * LANES


class Norm(NamedTuple):
    """Turns each gathered number into ``min(max(x * scale + shift, low), high)``.

    ``scale`` and ``shift`` are (channels of all arrays,); ``limits`` (2,) are low and high.
    """

    scale: Array
    shift: Array
    limits: Array


def serves(widths: Sequence[int]) -> bool:
    """Return whether arrays of these numbers of channels can be gathered."""
    return all(width % UNIT == 0 for width in widths)


def work_of(
    parts: Sequence[Array], norm: Norm, panels: Array, y: Array, finish: Finish
) -> Callable[[], object]:
    """Return a function that writes the product to y (rows, M), and finishes it, at each call.

    ``parts`` are (rows, channels), with multiples of ``UNIT`` channels; ``panels`` are (panels, all
    channels, COLUMNS); all are C-contiguous.
    """
    rows, depth = len(y), panels.shape[1]
    # An odd number of cache lines from row to row puts rows in different sets of L1.
    stride = (-(-depth // UNIT) | 1) * UNIT
    places = np.array([part.ctypes.data for part in parts])
    gathering = places, np.array([4 * part.shape[1] for part in parts]), norm
    if pointwise.by_panels(rows, len(panels)):
        whole = scratch("gathered", (rows, stride), np.float32)
        return partial(_by_panels, parts, gathering, whole, panels, y, finish)
    tile = TALL * pointwise.tile_of(len(panels) * depth, stride)
    room = scratch("gathered tiles", (threads(), tile, stride), np.float32)
    blocks, least = -(-rows // TALL), least_of(2.0 * depth * COLUMNS * TALL * len(panels))
    work = work_over_range(_tiles, blocks, least, *gathering, panels, y, finish, room)
    return partial(_while_there, parts, work)


def _while_there(parts: Sequence[Array], work: Callable[[], object]) -> None:
    """Do work that uses addresses of ``parts``, and keep the arrays alive meanwhile."""
    work()


def _by_panels(
    parts: Sequence[Array], gathering: Any, whole: Array, panels: Array, y: Array, finish: Finish
) -> None:
    """Gather a few rows at once, and share the weights, which are then read once."""
    over_range(_rows, len(whole), grain.least(grain.STREAM, whole.shape[1]), *gathering, whole)
    least = least_of(2.0 * whole.size * COLUMNS)
    over_range(pointwise.product_of_panels, len(panels), least, whole, panels, y, finish)


@jit
def _rows(places, widths, norm, whole, which, start, stop):
    _gather(places, widths, norm, start, stop - start, whole[start:stop])


@jit
def _tiles(places, widths, norm, panels, y, finish, room, which, start, stop):
    """Compute the blocks of rows ``start`` to ``stop``."""
    tile, cuts = room[which], pointwise.cuts_of(panels.shape[1])
    first, end = start * TALL, min(stop * TALL, y.shape[0])
    parts = -(-(end - first) // tile.shape[0])
    length = -(-(end - first) // (parts * TALL)) * TALL
    for begin in range(first, end, length):
        last = min(begin + length, end)
        _gather(places, widths, norm, begin, last - begin, tile)
        following = min(last + length, end)
        ahead = pointwise.soon(address(tile), 0, y, finish, last, following)
        pointwise.in_slices(
            tile, address(tile), tile.shape[1] * 4, cuts, panels, y, finish, begin, last, 0,
            panels.shape[0], ahead,
        )  # fmt: skip


@jit
def _gather(places, widths, norm, first, count, tile):
    """Write some rows, gathered and normed, to the rows of a tile."""
    scale, shift, limits = norm
    begin, step = 0, tile.shape[1] * 4
    for p in range(places.size):
        width = widths[p]
        source, target = places[p] + first * width, address(tile) + begin
        for _ in range(count):
            for c in range(0, width, VECTOR):
                by, more = address(scale) + begin + c, address(shift) + begin + c
                _put_normed(tile, source + c, by, more, limits[0], limits[1], target + c)
            source, target = source + width, target + step
        begin += width


@intrinsic
def _put_normed(context, like, source, scale, shift, low, high, target):
    """Write a vector of ``min(max(x * scale + shift, low), high)``; arrays are addresses."""
    number = like.dtype

    def generate(context, builder, signature, args):
        kind = ir.VectorType(context.get_data_type(number), LANES)
        x, by, more = (
            load(builder, builder.inttoptr(place, BYTE), 0, kind, 4) for place in args[1:4]
        )
        limits = [all_lanes(builder, kind, limit) for limit in args[4:6]]
        value = fma(builder, x, by, more)
        # Compared so that NaN stays.
        value = builder.select(builder.fcmp_ordered("<", value, limits[0]), limits[0], value)
        value = builder.select(builder.fcmp_ordered(">", value, limits[1]), limits[1], value)
        store(builder, value, builder.inttoptr(args[6], BYTE), 0, 4)
        return context.get_dummy_value()

    arguments = like, *[types.intp] * 3, number, number, types.intp
    return types.void(*arguments), generate
