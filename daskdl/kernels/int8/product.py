"""Convolutions and matrix products of bytes with int8 weights.

Each result is a sum over the taps of its window and their channels, four channels at a time. The
rows of A are read in place through a table of their addresses. A few dozen results share a table,
in which the addresses of a tap are contiguous. AMX multiplies copies of these rows. Sums depend
neither on padding nor on how the work is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.int8.block import (
    BYTES,
    COLUMNS,
    FLOATS,
    LINE,
    NOTHING,
    ROWS,
    multiply,
    multiply_channels,
    multiply_channels_narrow,
    multiply_narrow,
)
from daskdl.kernels.int8.in_tiles import in_tiles
from daskdl.kernels.int8.rows import write_table
from daskdl.kernels.int8.scale import HIGHEST, Scale
from daskdl.kernels.int8.tiles import NONE, usable
from daskdl.kernels.products.microkernel import LANES, address, fetch_all, keep
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import scratch
from daskdl.kernels.runtime.team import work_over_range
from daskdl.kernels.runtime.threads import cut_rows, threads
from daskdl.kernels.tiles.instructions import SIDE

Bytes = NDArray[np.uint8]

#: Bytes of rows of A that all panels multiply in turn: they stay in L2.
KEPT = 96 << 10
#: Distance in rows at which residual and results are prefetched to L2.
AHEAD = 2 * ROWS


class Panels(NamedTuple):
    """Weights in the order of a product, and their columns' first summands, scale and bias.

    ``words`` (panels, taps * words, COLUMNS or twice as many) have four numbers each, one for a
    depthwise convolution, or two without VPDPBUSD. ``columns`` (3, panels * COLUMNS) are the sums'
    first summands, then scale and bias as bits of float32. ``filters`` are a group's, whose
    panels are contiguous; ``channels`` is the step from group to group. ``depthwise`` columns are
    channels.
    """

    words: NDArray[np.int32]
    columns: NDArray[np.int32]
    filters: int
    channels: int = 0
    depthwise: bool = False


class End(NamedTuple):
    """The end of a sum: an array to add, limits, and the scale of results in bytes, or None."""

    residual: NDArray[Any] | None = None
    of_residual: Scale | None = None
    low: float = -np.inf
    high: float = np.inf
    into: Scale | None = None


def work_of(
    x: Bytes, zero: int, panels: Panels, geometry: Geometry, y: NDArray[Any], end: End
) -> Callable[[], object]:
    """Return a function that writes a convolution's results to y at each call.

    x (N, H, W, in) has a multiple of 4 channels; if a tap has more channels, they belong to the
    next pixels. ``zero`` is the byte that stands for 0; it pads the images. y (N, rows, columns,
    out) is float32, or uint8 if the end has a scale ``into``; both are C-contiguous.
    """
    images, rows, columns, filters = y.shape
    count, depth = images * rows * columns, x.shape[3]
    taps = geometry.offsets()
    alone = geometry.groups == 1 and not panels.depthwise
    tiles = usable() if alone and min(count, filters) >= SIDE else NONE
    into, other = end.into, end.of_residual
    least_y, most_y, inverse = 0.0, 0.0, 0.0
    if into is not None:
        inverse = into.inverse
        least_y = max(-float(into.zero), float(np.float32(end.low) * inverse))
        most_y = min(float(HIGHEST - into.zero), float(np.float32(end.high) * inverse))
    kind = NOTHING if end.residual is None else FLOATS if other is None else BYTES
    limits = np.array([
        0.0 if other is None else other.scale, end.low, end.high, inverse, least_y, most_y
    ], np.float32)  # fmt: skip
    plan = [
        *x.shape, rows, columns, filters, *geometry.stride, FLOATS if into is None else BYTES, kind,
        0 if other is None else other.zero, 0 if into is None else into.zero,
    ]  # fmt: skip
    residual = y if end.residual is None else end.residual
    arrays = panels.words, panels.columns, limits, _bytes(y), _bytes(residual)
    if tiles:
        return in_tiles(x, zero, geometry, tiles, plan, arrays)
    per_row = depth * min(len(taps), geometry.stride[0] * geometry.stride[1])
    length = max(4 * ROWS, KEPT // per_row // ROWS * ROWS)
    parts, length, shares = cut_rows(count, length, ROWS, 4 * ROWS, len(panels.words))
    more = np.array([*plan, length, shares, panels.filters, panels.channels, panels.depthwise])
    table = scratch("int8 table", (threads(), len(taps) * length), np.int64)
    places = scratch("int8 places", (threads(), length), np.int64)
    around = np.full(max(depth, panels.words.shape[1] // len(taps) * 4), zero, np.uint8)
    return work_over_range(
        _parts, parts * shares, 1, x.reshape(-1), taps, more, around, *arrays, table, places
    )


def _bytes(array: NDArray[Any]) -> Bytes:
    return array.reshape(-1).view(np.uint8)


@jit
def _parts(
    x, taps, plan, around, words, columns, limits, y, residual, tables, places, which, start, stop
):
    """Compute parts of the results, or shares of their panels."""
    length, shares, count = plan[13], plan[14], plan[0] * plan[4] * plan[5]
    table, targets, ready = tables[which], places[which], -1
    for item in range(start, stop):
        part, share = divmod(item, shares)
        first = part * length
        here = min(length, count - first)
        if part != ready:
            whole = -(-here // ROWS) * ROWS
            write_table(x, taps, plan, around, first, here, whole, table)
            for i in range(whole):
                targets[i] = (first + min(i, here - 1)) * plan[6]
            ready = part
        begin = words.shape[0] * share // shares
        end = words.shape[0] * (share + 1) // shares
        _multiply(
            words, columns, taps, plan, limits, y, residual, table, targets, here, begin, end
        )  # fmt: skip
    keep(around)


@jit
def _multiply(words, columns, taps, plan, limits, y, residual, table, targets, here, begin, end):
    """Multiply the rows of a table by the panels ``begin`` to ``end``."""
    segments, filters, depthwise = taps.shape[0], plan[15], plan[17] == 1
    depth, per_group = words.shape[1] // segments, -(-filters // COLUMNS)
    whole = -(-here // ROWS) * ROWS
    apart, size_y = columns.shape[1] * 4, 1 if plan[9] == BYTES else 4
    size_residual = 1 if plan[10] == BYTES else 4
    for panel in range(begin, end):
        b = address(words) + panel * words.shape[1] * LINE
        group, place_in_group = divmod(panel, per_group)
        columns_left = filters - place_in_group * COLUMNS
        for first in range(0, COLUMNS, COLUMNS if columns_left >= COLUMNS else LANES):
            rest = columns_left - first
            if rest <= 0:
                break
            column = group * filters + place_in_group * COLUMNS + first
            shift = column if depthwise else group * plan[16]
            packed = (
                apart, address(y) + column * size_y, address(residual) + column * size_residual,
                plan[9], plan[10], plan[11], limits[0], limits[1], limits[2], limits[3],
                plan[12], limits[4], limits[5], rest,
            )  # fmt: skip
            at_b, of_columns = b + first * 4, address(columns) + (panel * COLUMNS + first) * 4
            for i in range(0, whole, ROWS):
                if plan[10] == BYTES:
                    for number in targets[i + AHEAD : min(i + AHEAD + ROWS, whole)]:
                        fetch_all(packed[1] + number * size_y, COLUMNS * size_y)
                        fetch_all(packed[2] + number, COLUMNS)
                entry, place = address(table) + i * 8, address(targets) + i * 8
                _multiply_block(
                    entry, whole * 8, shift, segments, depth, at_b, of_columns, place,
                    packed, columns_left >= COLUMNS, depthwise,
                )  # fmt: skip


@jit
def _multiply_block(
    entry, step, shift, segments, depth, b, columns, place, packed, whole_panel, depthwise
):
    """Multiply a block's rows by the columns of a panel or of one vector."""
    if depthwise:
        if whole_panel:
            multiply_channels(entry, step, shift, segments, depth, b, columns, place, packed)
        else:
            multiply_channels_narrow(entry, step, shift, segments, depth, b, columns, place, packed)
    elif whole_panel:
        multiply(entry, step, shift, segments, depth, b, columns, place, packed)
    else:
        multiply_narrow(entry, step, shift, segments, depth, b, columns, place, packed)
