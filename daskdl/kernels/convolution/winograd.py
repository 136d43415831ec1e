"""Stride-1 convolution by Winograd's minimal filtering, 3x3 and 5x5, in all three passes.

F(4x4, 3x3) on tiles of 6x6 and F(4x4, 5x5) on tiles of 8x8 need 4 and 6.25 times fewer products
than the plain sum. Every tile is transformed to its values at 36 or 64 points; a matrix product
over the channels follows at each point; then the sums are transformed back.

A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, arXiv 1509.09308.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution import winograd_tiles as tiles
from daskdl.kernels.products.finish import Finish
from daskdl.kernels.products.microkernel import COLUMNS, ROWS, SEGMENT, WIDEST_COLUMNS
from daskdl.kernels.products.packing import pack
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty, scratch
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of, threads

Array = NDArray[np.floating]

#: Outputs along a tile's side, for either kernel.
M = 4
#: Bytes of a block of transformed tiles, in and out, of one thread.
BLOCK = 1 << 20
#: Most bytes of transformed tiles for which threads share filters instead of tiles.
FEW = 8 << 20
#: Bytes of transformed tiles that the gradient to the weights sums in a block.
SUMMED = 1 << 20
#: Least tiles of such a block: sums are read and written again for each block.
LEAST_TILES = 128
#: Most channels of a tile that stay together in sums for gradients to the weights.
WIDE = 64
#: Panels of filters that are transformed together: their weights are adjacent, and all channels of
#: a few filters make longer sums than a few channels of many.
TOGETHER = 64 // COLUMNS
#: Bytes of transformed filters that are used together: about L2.
PANELS = 600 << 10


class Weights(NamedTuple):
    """Weights (out, k, k, in) of a convolution, or of its adjoint, before their transform."""

    weight: Array
    adjoint: bool

    @property
    def kernel(self) -> int:
        """The kernel's side."""
        return self.weight.shape[1]

    @property
    def channels(self) -> tuple[int, int]:
        """The numbers of channels of input and result."""
        filters, channels = self.weight.shape[0], self.weight.shape[3]
        return (filters, channels) if self.adjoint else (channels, filters)


class Transformed(NamedTuple):
    """Weights at a scheme's points, in panels: (panels, points, in + 1, COLUMNS)."""

    kernel: int
    filters: int
    panels: Array


def transform(weights: Weights, name: str = "") -> Transformed:
    """Transform weights, into new memory or, with a name, into memory that is reused."""
    (channels, filters), side = weights.channels, weights.kernel + M - 1
    shape = (-(-filters // COLUMNS), side * side, channels + 1, COLUMNS)
    dtype = weights.weight.dtype
    panels = scratch(name, shape, dtype) if name else empty(shape, dtype)
    flat, taps = _in_order(weights)
    packed = scratch("packed", (threads(), TOGETHER, len(taps), channels + 1, COLUMNS), dtype)
    least = least_of(10 * side * side * channels * COLUMNS)
    arguments = flat, taps, weights.adjoint, packed, weights.kernel, channels, panels
    over_range(_transform, len(panels), least, *arguments)
    return Transformed(weights.kernel, filters, panels)


@jit
def _transform(flat, taps, adjoint, packed, kernel, channels, panels, which, start, stop):
    mine = packed[which]
    for first in range(start, stop, TOGETHER):
        n = min(TOGETHER, stop - first)
        pack(flat, taps, adjoint, first * COLUMNS, 0, channels, mine[:n])
        tiles.filters(mine, kernel, channels, panels[first : first + n])


def _in_order(weights: Weights) -> tuple[Array, NDArray[np.int64]]:
    """Return the weights (out, taps, in) and the order of taps; reversed for an adjoint."""
    weight = np.ascontiguousarray(weights.weight)
    taps = np.arange(weights.kernel**2)
    flat = weight.reshape(len(weight), -1, weight.shape[3])
    return flat, taps[::-1].copy() if weights.adjoint else taps


def _width(channels: int) -> int:
    """Return the numbers from a tile's channels to the next tile's: whole panels."""
    return _apart(-(-channels // COLUMNS) * COLUMNS)


def _widest(channels: int) -> int:
    """Return a number of channels, rounded up to whole panels of the widest vectors."""
    return -(-channels // WIDEST_COLUMNS) * WIDEST_COLUMNS


def _apart(numbers: int) -> int:
    """Return the distance between items of ``numbers`` numbers, off powers of two.

    It is never a multiple of 1 kB: sets of the caches repeat, and with 36 addresses of the same
    last bits, the processor takes a store to one for a load from another.
    """
    return numbers + COLUMNS if numbers % 256 == 0 else numbers


def convolve(
    x: Array,
    weights: Weights | Transformed,
    pad: tuple[int, int],
    size: tuple[int, int],
    out: Array | None,
    finish: Finish | None = None,
) -> Array:
    """Convolve ``x`` (N, H, W, in), C-contiguous, at stride 1.

    ``pad`` are rows of zeros above and columns left; those after follow from the result's ``size``.
    With ``out`` (N, rows, columns, out), C-contiguous, the result is added there; with ``finish``
    it is finished and written there.
    """
    kernel = weights.kernel
    filters = weights.channels[1] if isinstance(weights, Weights) else weights.filters
    add = out is not None and finish is None
    y = out if out is not None else empty((len(x), *size, filters), x.dtype)
    points = (kernel + M - 1) ** 2
    number = len(x) * -(-size[0] // M) * -(-size[1] // M)
    width = _width(x.shape[3])
    if not number:
        return y
    wide = number * points * _widest(x.shape[3]) * x.itemsize
    if wide <= FEW and number < _widest(filters):  # on all processors, as the order of sums
        _by_filters(x, weights, pad, y, add, number, width, finish)
        return y
    u = weights if isinstance(weights, Transformed) else transform(weights, "u")
    sums = _width(filters)
    block = _block(points * (width + sums) * x.itemsize)

    n = threads()
    v, products = (
        scratch(name, (n, points, _apart(min(block, number) * each + COLUMNS)), x.dtype)
        for name, each in (("v", width), ("products", sums))
    )
    table, spare = _tables(kernel, block, x)
    least = max(2 * ROWS, least_of(2 * points * x.shape[3] * filters))
    rooms, sizes = (v, products, table, spare), (width, sums, kernel, *pad, block)
    over_range(_convolve, number, least, x, u.panels, y, add, rooms, sizes, finish)
    return y


@jit
def _convolve(x, panels, y, add, rooms, sizes, finish, which, start, stop):
    width, sums, kernel, top, left, block = sizes
    v, products, table, spare = (
        rooms[0][which], rooms[1][which], rooms[2][which], rooms[3][which],
    )  # fmt: skip
    rows, columns, filters = y.shape[1:]
    for first in range(start, stop, block):
        last = min(first + block, stop)
        tiles.inputs(x, v, width, 0, kernel, top, left, rows, columns, first, last, first, spare)
        tiles.products(v, width, panels, products, sums, last - first, 0, x.shape[3], table)
        tiles.outputs(products, sums, kernel, y, 0, filters, first, last, add, spare, finish)


def _block(n_bytes: int) -> int:
    """Return the number of tiles of ``n_bytes`` bytes in a block: whole rows of products."""
    return min(16, max(2, BLOCK // (n_bytes * ROWS))) * ROWS


def _tables(kernel: int, number: int, like: Array) -> tuple[NDArray[np.int64], Array]:
    """Return memory of each thread for the microkernel's table and for a tile over an edge."""
    n = threads()
    table = scratch("tile table", (n, -(-number // ROWS), SEGMENT + ROWS), np.int64)
    spare = scratch("spare tile", (n, (kernel + M - 1) ** 2, tiles.CHUNK), like.dtype)
    return table, spare


def _by_filters(
    x: Array,
    weights: Weights | Transformed,
    pad: tuple[int, int],
    y: Array,
    add: bool,
    number: int,
    width: int,
    finish: Finish | None,
) -> None:
    """Convolve few tiles: transform all of them first, then use each panel of filters in turn.

    With 512 channels a filter's 36 points take longer to load from memory than to compute.
    """
    kernel, channels, filters = weights.kernel, x.shape[3], y.shape[3]
    points, n = (kernel + M - 1) ** 2, threads()
    v = scratch("all v", (points, _apart(number * width + COLUMNS)), x.dtype)
    table, spare = _tables(kernel, number, x)
    at = width, kernel, *pad, *y.shape[1:3], 0
    over_range(_inputs, number, least_of(10 * points * channels), x, v, spare, at)

    work = 2 * points * channels * COLUMNS * (number + 5)  # includes the filters' transform
    count, least = -(-filters // COLUMNS), least_of(work)
    columns = TOGETHER * COLUMNS
    products = scratch("products", (n, points, _apart(number * columns + COLUMNS)), x.dtype)
    rooms = v, products, table, spare
    if isinstance(weights, Transformed):
        sizes = width, kernel, number
        over_range(_use, count, least, weights.panels, y, add, rooms, sizes, finish)
        return
    deep = max(16, PANELS // (TOGETHER * points * COLUMNS * x.itemsize) // 16 * 16)
    deep = min(deep, channels)
    packed = scratch("packed", (n, TOGETHER, kernel**2, deep + 1, COLUMNS), x.dtype)
    panels = scratch("some panels", (n, TOGETHER, points, deep + 1, COLUMNS), x.dtype)
    over_range(
        _transform_and_use, count, least, *_in_order(weights), weights.adjoint, y, add, rooms,
        (packed, panels), (width, kernel, number, channels, deep),
    )  # fmt: skip


@jit
def _inputs(x, v, spare, sizes, which, start, stop):
    width, kernel, top, left, rows, columns, origin = sizes
    tiles.inputs(
        x, v, width, 0, kernel, top, left, rows, columns, origin + start, origin + stop, origin,
        spare[which],
    )  # fmt: skip


@jit
def _use(panels, y, add, rooms, sizes, finish, which, start, stop):
    """Multiply all tiles by the panels ``start`` to ``stop``."""
    v, (width, kernel, number) = rooms[0], sizes
    products, table, spare = rooms[1][which], rooms[2][which], rooms[3][which]
    columns, channels, filters = TOGETHER * COLUMNS, panels.shape[2] - 1, y.shape[3]
    for j in range(start, stop, TOGETHER):
        end = min(j + TOGETHER, stop)
        tiles.products(v, width, panels[j:end], products, columns, number, 0, channels, table)
        first, last = j * COLUMNS, min(end * COLUMNS, filters)
        tiles.outputs(products, columns, kernel, y, first, last, 0, number, add, spare, finish)


@jit
def _transform_and_use(flat, taps, adjoint, y, add, rooms, weight_rooms, sizes, which, start, stop):
    """Multiply as :func:`_use`, but transform the weights first, some at a time."""
    v, (width, kernel, number, channels, deep) = rooms[0], sizes
    products, table, spare = rooms[1][which], rooms[2][which], rooms[3][which]
    packed, panels = weight_rooms[0][which], weight_rooms[1][which]
    columns, filters = TOGETHER * COLUMNS, y.shape[3]
    for j in range(start, stop, TOGETHER):
        n = min(TOGETHER, stop - j)
        for first in range(0, channels, deep):
            last = min(first + deep, channels)
            pack(flat, taps, adjoint, j * COLUMNS, first, last, packed[:n])
            tiles.filters(packed[:n], kernel, last - first, panels[:n])
            tiles.products(
                v, width, panels[:n], products, columns, number, first, last - first, table
            )
        first, last = j * COLUMNS, min((j + n) * COLUMNS, filters)
        tiles.outputs(products, columns, kernel, y, first, last, 0, number, add, spare, None)


def weight_gradient(x: Array, dy: Array, kernel: int, pad: tuple[int, int]) -> Array:
    """Return the gradient (out, k, k, in) of a convolution of ``x`` (N, H, W, in) to its weights.

    ``dy`` (N, rows, columns, out) is the gradient to its result; both are C-contiguous.
    """
    channels, filters = x.shape[3], dy.shape[3]
    points = (kernel + M - 1) ** 2
    number = len(x) * -(-dy.shape[1] // M) * -(-dy.shape[2] // M)
    dw = np.empty((filters, kernel, kernel, channels), x.dtype)
    if not number:
        dw[:] = 0
        return dw
    numbers = points * (_widest(channels) + _widest(filters))
    block = max(LEAST_TILES, SUMMED // (numbers * x.itemsize))
    block = -(-number // -(-number // block))  # all blocks about equal
    *v_strips, v_size = _strips(channels, COLUMNS, block)
    *z_strips, z_size = _strips(filters, tiles.FOLDED * ROWS, block)
    v = scratch("all v", (points, v_size), x.dtype)
    z = scratch("all z", (points, z_size), x.dtype)
    table, spare = _tables(kernel, tiles.FOLDED * ROWS, x)
    # With one block, a few filters' sums are folded to weights at once; else all wait for the last.
    rows = (1, filters) if block < number else (threads(), tiles.FOLDED * ROWS)
    sums = scratch("sums", (rows[0], points, rows[1] + 1, _width(channels)), x.dtype)
    for first in range(0, number, block):
        last = min(first + block, number)
        sizes = *v_strips, *z_strips, kernel, *pad, first
        least = least_of(10 * points * (channels + filters))
        over_range(_gradient_tiles, last - first, least, x, dy, v, z, spare, sizes)
        strips = (*v_strips, *z_strips), last - first, first > 0, last == number
        least = least_of(2 * points * (last - first) * channels * ROWS)
        over_range(
            _gradient_sums, -(-filters // ROWS), least, v, z, sums, dw, table, spare, strips
        )  # fmt: skip
    return dw


def _strips(channels: int, narrow: int, block: int) -> tuple[int, int, int]:
    """Return a tile's numbers in a strip, and the steps from strip to strip and point to point.

    With many channels strips are narrow, so that a product's part of them stays in L1; rows of more
    than :data:`WIDE` channels would not. Steps are never multiples of 1 kB.
    """
    strip = narrow if channels > WIDE else _width(channels)
    step = _apart(block * strip + COLUMNS)
    return strip, step, _apart(-(-channels // strip) * step + COLUMNS)


@jit
def _gradient_tiles(x, dy, v, z, spare, sizes, which, start, stop):
    v_strip, v_step, z_strip, z_step, kernel, top, left, origin = sizes
    rows, columns, first, last = dy.shape[1], dy.shape[2], origin + start, origin + stop
    room = spare[which]
    tiles.inputs(
        x, v, v_strip, v_step, kernel, top, left, rows, columns, first, last, origin, room
    )  # fmt: skip
    tiles.gradients(dy, z, z_strip, z_step, kernel, first, last, origin, room)


@jit
def _gradient_sums(v, z, sums, dw, table, spare, sizes, which, start, stop):
    strips, count, add, last = sizes
    du = sums[min(which, len(sums) - 1)]
    tiles.sums(v, z, strips, count, du, dw, add, last, start, stop, table[which], spare[which])
