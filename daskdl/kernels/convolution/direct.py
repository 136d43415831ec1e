"""Convolution of any kernel, stride, dilation and groups as products over pixels in place.

There is no im2col matrix: the rows of a product are pixels, found through a table of addresses (M.
Dukhan, The Indirect Convolution Algorithm, arXiv 1907.02129); a pixel outside the image is the
address of zeros. The gradient to the input is the same sum over other tables, one for each place
of a pixel between two strides, so that no two threads ever add to the same number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.finish import Finish
from daskdl.kernels.products.microkernel import (
    COLUMNS,
    DEPTH,
    LANES,
    ROWS,
    SEGMENT,
    address,
    copy,
    fetch_all,
    keep,
    multiply,
    multiply_and_end,
    multiply_half_and_end,
    multiply_narrow_and_end,
)
from daskdl.kernels.products.packing import interleave, packed_weights
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import scratch
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of, threads

Array = NDArray[np.floating]

#: Groups of ``ROWS`` pixels that are computed together: each uses a panel's part from L1.
GROUPS = 16
#: Pixels that the gradient to the weights sums together; their 16 columns fill a third of L1.
PIXELS = 192
#: Pixels of bfloat16 numbers that it sums together, an even number.
PAIRED = 256
#: Name of the scratch memory for weights that are packed in each call.
KEPT = "panels"
#: Most bytes of the results' gradients at these pixels.
BLOCK = 256 << 10


def forward(x: Array, weight: Array, geometry: Geometry, y: Array, add: bool) -> None:
    """Write, or add, the convolution of ``x`` with ``weight`` (out, kh, kw, in / groups) to y."""
    _forward(x, by_group(weight, geometry, KEPT), geometry, len(weight), y, add, None)


def by_group(weight: Array, geometry: Geometry, name: str = "") -> Iterator[Array]:
    """Yield the packed weights of each group; with a name, the next group reuses the memory."""
    flat, order = _flat(weight), np.arange(weight.shape[1] * weight.shape[2])
    filters = len(weight) // geometry.groups
    return (
        packed_weights(flat[group * filters : (group + 1) * filters], order, False, name)
        for group in range(geometry.groups)
    )


def forward_packed(
    x: Any, groups: Sequence[Any], geometry: Geometry, y: Array, finish: Finish
) -> None:
    """Write the convolution with weights from :func:`by_group` to y, and finish it."""
    _forward(x, groups, geometry, y.shape[3], y, False, finish)


def _forward(x, groups, geometry, all_filters, y, add, finish):
    offsets, grid = geometry.offsets(), (0, 0, 1, 1, *y.shape[1:3])
    filters, channels = all_filters // geometry.groups, x.shape[3] // geometry.groups
    for group, panels in enumerate(groups):
        _correlate(
            x, group * channels, channels, offsets, geometry.stride, panels, y, group * filters,
            filters, grid, add, finish,
        )  # fmt: skip


def input_gradient(dy: Array, weight: Array, geometry: Geometry, dx: Array) -> None:
    """Write the gradient to the input; ``dx`` (N, H, W, in)."""
    flat, filters, channels = _flat(weight), len(weight) // geometry.groups, weight.shape[3]
    for order, offsets, grid in geometry.phases(*dx.shape[1:3]):
        if not order.size:
            dx[:, grid[0] :: grid[2], grid[1] :: grid[3]] = 0
            continue
        for group in range(geometry.groups):
            of_group = flat[group * filters : (group + 1) * filters]
            panels = packed_weights(of_group, order, True, KEPT)
            _correlate(
                dy, group * filters, filters, offsets, (1, 1), panels, dx, group * channels,
                channels, grid, False, None,
            )  # fmt: skip


def weight_gradient(x: Any, dy: Any, geometry: Geometry) -> Array:
    """Return the gradient to the weights (out, kh, kw, in / groups).

    x and dy are floats or, without groups, uint16: bfloat16 numbers, which are summed in pairs of
    pixels to float32.
    """
    channels, filters = x.shape[3] // geometry.groups, dy.shape[3] // geometry.groups
    pairs = x.dtype == np.uint16
    word: Any = np.uint32 if pairs else x.dtype
    dw = np.zeros((dy.shape[3], *geometry.kernel, channels), np.float32 if pairs else x.dtype)
    offsets = geometry.offsets()
    depth = dw[0].size // len(offsets)
    flat = dw.reshape(len(dw), -1)
    panels = -(-flat.shape[1] // COLUMNS)
    # Pixels whose gradients stay in L2 from one panel to the next.
    block = PAIRED if pairs else max(32, min(PIXELS, BLOCK // (dy.shape[3] * dy.itemsize)))

    n, summands = threads(), block // 2 if pairs else block
    gathered = scratch("gathered pixels", (n, block + 1, COLUMNS), x.dtype)
    columns = scratch("columns", (n, summands, COLUMNS), word) if pairs else gathered
    # An extra panel keeps pixels out of the same sets of a cache.
    rows = scratch("rows", (n, summands, -(-filters // COLUMNS) * COLUMNS + COLUMNS), word)
    if dy.size:
        sizes = geometry.groups, depth, *geometry.stride, filters, block
        over_range(
            _gradients, panels, least_of(2 * dy.size // geometry.groups * COLUMNS),
            x, sizes, offsets, dy, flat, rows, gathered, columns,
        )  # fmt: skip
    return dw


def _flat(weight: Array) -> Array:
    return np.ascontiguousarray(weight).reshape(len(weight), -1, weight.shape[3])


def _correlate(
    x, first_channel, depth, offsets, steps, panels, y, first_filter, filters, grid, add, finish
):
    """Sum, at each place of a grid on ``y``, the taps' pixels times their weights."""
    plan = np.array([first_channel, depth, *steps, first_filter, filters, *grid])
    slices = -(-depth // DEPTH)
    segments = len(offsets) * slices

    n = threads()
    tables = scratch("table", (n, GROUPS, segments, SEGMENT), np.int64)
    targets = scratch("targets", (n, 2, GROUPS, ROWS), np.int64)
    spare = scratch("spare", (n, GROUPS * ROWS, COLUMNS), y.dtype)
    pixels = len(y) * grid[4] * grid[5]
    if pixels:
        least = max(2 * ROWS, least_of(2 * len(offsets) * depth * filters))
        rooms = tables, targets, spare, np.zeros(depth, x.dtype)
        over_range(_sums, pixels, least, x, offsets, panels, y, plan, slices, add, rooms, finish)


@jit
def _sums(x, offsets, panels, y, plan, slices, add, rooms, finish, which, start, stop):
    """Compute the places ``start`` to ``stop`` of the grid."""
    table, targets, spare, zeros = rooms[0][which], rooms[1][which], rooms[2][which], rooms[3]
    first_channel, depth, step_down, step_across, first_filter, filters = plan[:6]
    first_row, first_column, down, across, grid_rows, grid_columns = plan[6:]
    height, width, channels = x.shape[1:]
    rows, columns, all_filters = y.shape[1:]
    size = x.itemsize
    segments = offsets.shape[0] * slices
    length = -(-depth // slices)
    together = max(1, DEPTH // length)
    panel_bytes = panels.shape[1] * panels.shape[2] * COLUMNS * size
    from_x, to_y = address(x) + first_channel * size, address(y) + first_filter * size
    nothing, from_panels = address(zeros), address(panels)
    # Views count references, which slows a product down: so flat indices and addresses only.
    at_table, at_targets = address(table), address(targets)
    entries, places = table.reshape(-1), targets.reshape(-1)
    one, other = segments * SEGMENT, GROUPS * ROWS  # from group to group; to the spare targets
    for e in range(GROUPS * segments):
        s = e % segments
        begin = s % slices * length
        entries[e * SEGMENT + ROWS] = (s // slices * depth + begin) * COLUMNS * size
        entries[e * SEGMENT + ROWS + 1] = min(length, depth - begin)
    for r in range(GROUPS * ROWS):
        places[other + r] = address(spare) + r * COLUMNS * size
    n, rest = divmod(start, grid_rows * grid_columns)
    t, u = divmod(rest, grid_columns)
    # Blocks of about equal length: a short last one would read all panels for a few pixels.
    blocks = max(1, -(-(stop - start) // (GROUPS * ROWS)))
    block = -(-(stop - start) // (blocks * ROWS)) * ROWS
    # If rows are contiguous, ``ahead`` leads from a block's rows to the next block's.
    close = (offsets.shape[0] == 1) & (step_down == 1) & (step_across == 1)
    ahead = block * channels * size
    for first in range(start, stop, block):
        count = min(block, stop - first)
        groups = -(-count // ROWS)
        for r in range(groups * ROWS):
            entry = r // ROWS * one + r % ROWS
            if r >= count:  # repeat the last one
                places[r], places[other + r] = places[r - 1], places[other + r - 1]
                for s in range(segments):
                    entries[entry + s * SEGMENT] = entries[entry + s * SEGMENT - 1]
                continue
            places[other + r] = address(spare) + r * COLUMNS * size
            place = (n * rows + first_row + t * down) * columns + first_column + u * across
            places[r] = to_y + place * all_filters * size
            row, column = t * step_down, u * step_across
            corner = from_x + ((n * height + row) * width + column) * channels * size
            for tap in range(offsets.shape[0]):
                far, wide = offsets[tap, 0], offsets[tap, 1]
                inside = (row + far >= 0) & (row + far < height)
                inside &= (column + wide >= 0) & (column + wide < width)
                pixel = corner + (far * width + wide) * channels * size if inside else nothing
                step = length * size if inside else 0
                for _ in range(slices):
                    entries[entry] = pixel
                    pixel += step
                    entry += SEGMENT
            u += 1
            if u == grid_columns:
                u, t = 0, t + 1
                if t == grid_rows:
                    t, n = 0, n + 1
        for s in range(0, segments, together):
            number = min(together, segments - s)
            for j in range(panels.shape[0]):
                whole = (j + 1) * COLUMNS <= filters
                target = at_targets if whole else at_targets + other * 8
                for group in range(groups):
                    entry = at_table + (group * one + s * SEGMENT) * 8
                    panel, to = from_panels + j * panel_bytes, target + group * ROWS * 8
                    offset, more = j * COLUMNS * size if whole else 0, s > 0 or (add and whole)
                    if finish is not None and s + number == segments:
                        multiply_last(
                            x, entry, number, size, panel, COLUMNS * size,
                            at_targets + group * ROWS * 8, j * COLUMNS * size, more, to, offset, y,
                            first_filter, finish, filters - j * COLUMNS,
                        )  # fmt: skip
                    else:
                        multiply(
                            x, entry, number, size, panel, COLUMNS * size, to, offset, more
                        )  # fmt: skip
                    # Prefetch a share of the next rows with each product.
                    if close and (s + 1 < segments or first + block < stop):
                        for i in range(j, ROWS, panels.shape[0]):
                            last = s + 1 == segments
                            entry = group * one + i + (0 if last else (s + 1) * SEGMENT)
                            row = entries[entry] + (ahead if last else 0)
                            fetch_all(row, length * size)
        if filters % COLUMNS and finish is None:
            width_left = filters % COLUMNS
            _move(spare, count, width_left, y, filters - width_left, places, add)


@jit
def multiply_last(
    x, entry, segments, size, panel, line, to, offset, more, source, source_offset, y,
    first_filter, finish, columns,
):  # fmt: skip
    """Compute the last product of a block, and finish it; a last panel may be narrow."""
    bias = address(finish[0]) + first_filter * size + offset
    residual = address(finish[1]) - address(y)
    low, high = finish[2][0], finish[2][1]
    if columns >= COLUMNS:
        multiply_and_end(
            x, entry, segments, size, panel, line, to, offset, more, to, offset, bias, residual,
            low, high, columns,
        )  # fmt: skip
    elif columns > LANES:
        multiply_narrow_and_end(
            x, entry, segments, size, panel, line, to, offset, more, source, source_offset, bias,
            residual, low, high, columns,
        )  # fmt: skip
    else:
        multiply_half_and_end(
            x, entry, segments, size, panel, line, to, offset, more, source, source_offset, bias,
            residual, low, high, columns,
        )  # fmt: skip


@jit
def _move(spare, count, width, y, behind, targets, add):
    """Copy, or add, a narrow panel's results, which a whole product cannot write, to ``y``."""
    flat = y.reshape(-1)
    for r in range(count):
        start = (targets[r] - address(y)) // y.itemsize + behind
        for c in range(width):
            if add:
                flat[start + c] += spare[r, c]
            else:
                flat[start + c] = spare[r, c]


@jit
def _gradients(x, sizes, offsets, dy, dw, rows, gathered, columns, which, start, stop):
    groups, depth, down, across, filters, block = sizes
    rooms = rows[which], gathered[which], columns[which]
    for group in range(groups):
        plan = group * depth, depth, down, across, group * filters, block
        of_group = dw[group * filters : (group + 1) * filters]
        _gradient(x, plan, offsets, dy, of_group, rooms, start, stop)


@jit
def _gradient(x, plan, offsets, dy, dw, rooms, start, stop):
    """Add to the panels ``start`` to ``stop`` of ``dw`` (filters, taps * depth)."""
    first_channel, depth, step_down, step_across, first_filter, block = plan
    rows, gathered, columns = rooms
    size, pairs = rows.itemsize, x.itemsize == 2
    filters, length = dw.shape
    height, width, channels = x.shape[1:]
    flat_dy, all_filters = dy.reshape(-1), dy.shape[3]
    table, targets = np.empty(SEGMENT, np.int64), np.empty(ROWS, np.int64)
    spare = np.empty((ROWS, COLUMNS), dw.dtype)
    places = np.empty((3, block), np.int64)
    pixels = dy.shape[0] * dy.shape[1] * dy.shape[2]
    n, t, u = 0, 0, 0
    for first in range(0, pixels, block):
        count = min(block, pixels - first)
        summands = (count + 1) // 2 if pairs else count
        for p in range(count):
            row, column = t * step_down, u * step_across
            places[1, p], places[2, p] = row, column
            places[0, p] = ((n * height + row) * width + column) * channels * x.itemsize
            u += 1
            if u == dy.shape[2]:
                u, t = 0, t + 1
                if t == dy.shape[1]:
                    t, n = 0, n + 1
        for r in range(summands):
            lower = (first + (2 * r if pairs else r)) * all_filters + first_filter
            alone = not pairs or 2 * r + 1 == count
            upper = lower if alone else lower + all_filters
            interleave(
                flat_dy[lower : lower + filters], flat_dy[upper : upper + filters], alone, rows[r]
            )
        table[ROWS], table[ROWS + 1] = 0, summands
        for j in range(start, stop):
            begin, end = j * COLUMNS, min((j + 1) * COLUMNS, length)
            _columns(x, first_channel, depth, offsets, places, count, begin, end, gathered)
            if pairs:
                for r in range(summands):
                    alone = 2 * r + 1 == count
                    interleave(gathered[2 * r], gathered[2 * r + 1], alone, columns[r])
            whole = end - begin == COLUMNS
            for group in range(0, filters, ROWS):
                for i in range(ROWS):
                    row = min(group + i, filters - 1)
                    table[i] = address(rows) + row * size
                    if whole:
                        targets[i] = address(dw) + (row * length + begin) * size
                    else:
                        targets[i] = address(spare) + (row - group) * COLUMNS * size
                multiply(
                    rows, address(table), 1, rows.shape[1] * size, address(columns),
                    COLUMNS * size, address(targets), 0, whole,
                )  # fmt: skip
                if not whole:
                    for i in range(min(ROWS, filters - group)):
                        for c in range(end - begin):
                            dw[group + i, begin + c] += spare[i, c]


@jit
def _columns(x, first_channel, depth, offsets, places, count, begin, end, columns):
    """Gather the numbers of columns ``begin`` to ``end`` of (taps * depth) at some places.

    ``places`` (3, PIXELS) are bytes from the first pixel of ``x``, rows and columns. Each copy has
    ``COLUMNS`` numbers; the next copy overwrites superfluous ones.
    """
    height, width, channels = x.shape[1:]
    size = x.itemsize
    limit = address(x) + (x.size - COLUMNS) * size
    zeros, flat = np.zeros(COLUMNS, x.dtype), x.reshape(-1)
    nothing, to = address(zeros), address(columns)
    first_tap, taps = begin // depth, (end - 1) // depth - begin // depth + 1
    runs = np.empty((4, COLUMNS), np.int64)  # each tap's row and column offsets, source, target
    for r in range(taps):
        tap = first_tap + r
        down, across = offsets[tap, 0], offsets[tap, 1]
        behind = max(0, tap * depth - begin)  # the panel's columns of earlier taps
        channel = first_channel + begin + behind - tap * depth
        runs[0, r], runs[1, r], runs[3, r] = down, across, behind * size
        runs[2, r] = address(x) + ((down * width + across) * channels + channel) * size
    for p in range(count):
        for r in range(taps):
            row, column = places[1, p] + runs[0, r], places[2, p] + runs[1, r]
            source, target = places[0, p] + runs[2, r], to + runs[3, r]
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            # Most of the next panel's columns are the next channels of the same pixels.
            fetch_all(source + COLUMNS * size, COLUMNS * size)
            if inside and source > limit:
                position, behind = (source - address(x)) // size, runs[3, r] // size
                for c in range(min(COLUMNS - behind, x.size - position)):
                    columns[p, behind + c] = flat[position + c]
            else:
                copy(x, source if inside else nothing, target)
        to += COLUMNS * size
    keep(zeros)
