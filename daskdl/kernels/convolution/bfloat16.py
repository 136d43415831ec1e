"""Convolution in bfloat16: images and gradients are rounded to pairs once, weights in each call.

Sums are made as in :mod:`daskdl.kernels.convolution.direct`, over pairs of channels, and in the
gradient to the weights over pairs of pixels. See :mod:`daskdl.kernels.products.bfloat16`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution import direct
from daskdl.kernels.convolution.conv2d import way
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products import bfloat16 as products
from daskdl.kernels.products import pointwise
from daskdl.kernels.products.finish import finish_of
from daskdl.kernels.products.microkernel import COLUMNS, ROWS, SEGMENT, address, multiply
from daskdl.kernels.products.packing import packed_weights
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty, scratch
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of, threads

Array = NDArray[np.float32]
Pairs = NDArray[np.uint32]

#: Least channels and filters for pairs.
LEAST = 16
#: Most pairs of a pixel for which blocks of 14 rows are faster than blocks of 6: the start and end
#: of a block take as long as some twenty summands.
SHALLOW = 64
#: Pixels that the gradient to the weights sums together, an even number.
PIXELS = 256


def serves(channels: int, weight: Array, geometry: Geometry) -> bool:
    """Return whether this module computes a convolution in the precision "bf16-pairs".

    Winograd computes 3x3 and 5x5 at stride 1 in float32, which takes as long: in bfloat16 its tiles
    of 4x4 would lose a digit.
    """
    filters = len(weight)
    return (
        weight.dtype == np.float32
        and geometry.groups == 1
        and min(channels, filters) >= LEAST
        and way("forward", geometry, channels, filters) != "winograd"
    )


def forward(x: Pairs, weight: Array, geometry: Geometry, size: tuple[int, int]) -> Array:
    """Convolve pairs of channels (N, H, W, in / 2) with ``weight`` (out, kh, kw, in)."""
    y = empty((len(x), *geometry.size(*size), len(weight)), np.float32)
    panels = panels_of(weight)
    if geometry.pointwise and x.shape[3] <= SHALLOW:
        _by_tall_blocks(x, panels, y)
    else:
        direct._forward(x, (panels,), geometry, len(weight), y, False, None)
    return y


def _by_tall_blocks(x: Pairs, panels: Pairs, y: Array) -> None:
    """Write the products of each pixel's pairs to y, with the same bits as other ways."""
    if not y.size:
        return
    rows = x.reshape(-1, x.shape[3])
    flat, results = panels.reshape(-1, x.shape[3], COLUMNS), y.reshape(len(rows), -1)
    pointwise.work_of(
        rows, flat, results, finish_of(results, np.zeros(flat.shape[0] * COLUMNS, y.dtype))
    )()


def panels_of(weight: Array) -> Pairs:
    """Return weights (out, kh, kw, in) rounded and in panels, in memory that the thread reuses."""
    flat = weight.reshape(len(weight), -1, weight.shape[3])
    return packed_weights(products.along(flat), np.arange(flat.shape[1]), False, direct.KEPT)


def input_gradient(dy: Pairs, weight: Array, geometry: Geometry, size: tuple[int, int]) -> Array:
    """Return the gradient to x (N, *size, in) from pairs of filters (N, rows, columns, out / 2)."""
    filters, channels = len(weight), weight.shape[3]
    taps = weight.shape[1] * weight.shape[2]
    flat = products.across(weight.reshape(filters, -1)).reshape(-1, taps, channels)
    dx = np.empty((len(dy), *size, channels), np.float32)
    if geometry.pointwise and dy.shape[3] <= SHALLOW:
        _by_tall_blocks(dy, packed_weights(flat, np.zeros(1, np.int64), True, direct.KEPT), dx)
        return dx
    for order, offsets, grid in geometry.phases(*size):
        if not order.size:
            dx[:, grid[0] :: grid[2], grid[1] :: grid[3]] = 0
            continue
        panels = packed_weights(flat, order, True, direct.KEPT)
        direct._correlate(
            dy, 0, dy.shape[3], offsets, (1, 1), panels, dx, 0, channels, grid, False, None
        )
    return dx


def weight_gradient(x: Pairs, dy: Pairs, geometry: Geometry, weight: Array) -> Array:
    """Return the gradient to weights like ``weight`` from pairs of channels and of filters."""
    filters, channels = len(weight), weight.shape[3]
    if geometry.pointwise:
        pixels = dy.size // dy.shape[3]
        both = (
            products.across_pairs(pairs.reshape(pixels, -1), columns)
            for pairs, columns in ((dy, filters), (x, channels))
        )
        return products.outer_product(*both).reshape(weight.shape)
    dw = np.zeros(weight.shape, np.float32)
    flat, offsets = dw.reshape(filters, -1), geometry.offsets()
    panels, n = -(-flat.shape[1] // COLUMNS), threads()
    if dy.size:
        words = x.view(np.uint16), dy.view(np.uint16)
        rooms = (
            scratch("bfloat16 rows", (n, PIXELS // 2, filters + COLUMNS), np.uint32),
            scratch("bfloat16 gathered", (n, PIXELS + 1, COLUMNS), np.uint16),
            scratch("bfloat16 columns", (n, PIXELS // 2, COLUMNS), np.uint32),
        )
        least = least_of(2 * dy.size * COLUMNS)
        sizes = channels, *geometry.stride
        over_range(_gradients, panels, least, *words, sizes, offsets, flat, *rooms)
    return dw


@jit
def _gradients(x, dy, sizes, offsets, dw, rows, gathered, columns, which, start, stop):
    """Add to the panels ``start`` to ``stop`` of ``dw`` (filters, taps * channels)."""
    rows, gathered, columns = rows[which], gathered[which], columns[which]
    depth, down, across = sizes
    filters, length = dw.shape
    row_bytes = rows.shape[1] * 4
    height, width, channels = x.shape[1:]
    flat_dy, all_filters = dy.reshape(-1), dy.shape[3]
    table, targets = np.empty(SEGMENT, np.int64), np.empty(ROWS, np.int64)
    spare = np.empty((ROWS, COLUMNS), dw.dtype)
    places = np.empty((3, PIXELS), np.int64)
    pixels = dy.shape[0] * dy.shape[1] * dy.shape[2]
    n, t, u = 0, 0, 0
    for first in range(0, pixels, PIXELS):
        count = min(PIXELS, pixels - first)
        pairs = (count + 1) // 2
        for p in range(count):
            row, column = t * down, u * across
            places[1, p], places[2, p] = row, column
            places[0, p] = ((n * height + row) * width + column) * channels * 2
            u += 1
            if u == dy.shape[2]:
                u, t = 0, t + 1
                if t == dy.shape[1]:
                    t, n = 0, n + 1
        for r in range(pairs):
            source = (first + 2 * r) * all_filters
            last = 2 * r + 1 == count
            _interleave(
                flat_dy[source : source + filters],
                flat_dy[(source if last else source + all_filters) :], last, rows[r],
            )  # fmt: skip
        table[ROWS], table[ROWS + 1] = 0, pairs
        for j in range(start, stop):
            begin, end = j * COLUMNS, min((j + 1) * COLUMNS, length)
            direct._columns(x, 0, depth, offsets, places, count, begin, end, gathered)
            for r in range(pairs):
                last = 2 * r + 1 == count
                _interleave(gathered[2 * r], gathered[2 * r + 1], last, columns[r])
            whole = end - begin == COLUMNS
            for group in range(0, filters, ROWS):
                for i in range(ROWS):
                    row = min(group + i, filters - 1)
                    table[i] = address(rows) + row * 4
                    if whole:
                        targets[i] = address(dw) + (row * length + begin) * 4
                    else:
                        targets[i] = address(spare) + (row - group) * COLUMNS * 4
                multiply(
                    rows, address(table), 1, row_bytes, address(columns), COLUMNS * 4,
                    address(targets), 0, whole,
                )  # fmt: skip
                if not whole:
                    for i in range(min(ROWS, filters - group)):
                        for c in range(end - begin):
                            dw[group + i, begin + c] += spare[i, c]


@jit
def _interleave(lower, upper, alone, target):
    """Write pairs of two rows of words; if ``alone``, the upper ones are zeros."""
    if alone:
        for k in range(lower.size):
            target[k] = lower[k]
    else:
        for k in range(lower.size):
            target[k] = np.uint32(lower[k]) | (np.uint32(upper[k]) << np.uint32(16))
