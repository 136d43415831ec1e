"""Stride-1 convolution by Winograd's minimal filtering, 3x3 and 5x5, in all three passes.

F(4x4, 3x3) on tiles of 6x6 and F(4x4, 5x5) on tiles of 8x8: 4 and 6.25 times fewer products than
the plain sum. Every tile is taken to its values at 36 or 64 points; at each point a matrix product
over the channels does the work; and the sums are taken back.

A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, arXiv 1509.09308.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels import tiles
from daskdl.kernels.microkernel import COLUMNS, LANES, ROWS, SEGMENT, pack
from daskdl.kernels.scratch import scratch
from daskdl.kernels.threads import in_parallel, least_of

Array = NDArray[np.floating]

#: Outputs of a tile's side, for either kernel.
M = 4
#: Bytes of the transformed tiles, in and out, that one thread handles at a time.
BLOCK = 1 << 20
#: Bytes of transformed tiles up to which filters, not tiles, are what is handled in turn.
FEW = 8 << 20
#: Bytes of transformed tiles that the gradient to the weights sums up at a time.
SUMMED = 1 << 20
#: Tiles that it sums up at a time at least: their sums are read and written again for each block.
LEAST = 128
#: Groups of ``ROWS`` filters whose gradients are folded together.
FOLDED = 4
#: Panels of filters that are transformed together, from rows of the weights that lie together.
TOGETHER = 4
#: Bytes of transformed filters that are used up at a time: about L2.
PANELS = 600 << 10


class Weights(NamedTuple):
    """Weights (out, k, k, in) of a convolution, or of its adjoint, that are not transformed yet."""

    weight: Array
    adjoint: bool

    @property
    def kernel(self) -> int:
        """Return the kernel's side."""
        return self.weight.shape[1]

    @property
    def channels(self) -> tuple[int, int]:
        """Return the channels that come in and go out."""
        filters, channels = self.weight.shape[0], self.weight.shape[3]
        return (filters, channels) if self.adjoint else (channels, filters)


class Transformed(NamedTuple):
    """Weights at a scheme's points, in panels: (panels, points, in + 1, COLUMNS)."""

    kernel: int
    filters: int
    panels: Array


def transform(weights: Weights, name: str = "") -> Transformed:
    """Take weights to their points, into new memory or, with a name, into kept memory."""
    (channels, filters), side = weights.channels, weights.kernel + M - 1
    shape = (-(-filters // COLUMNS), side * side, channels + 1, COLUMNS)
    dtype = weights.weight.dtype
    panels = scratch(name, shape, dtype) if name else np.empty(shape, dtype)
    flat, taps = _in_order(weights)

    def part(start: int, stop: int) -> None:
        packed = scratch("packed", (TOGETHER, len(taps), channels + 1, COLUMNS), dtype)
        for first in range(start, stop, TOGETHER):
            n = min(TOGETHER, stop - first)
            pack(flat, taps, weights.adjoint, first * COLUMNS, 0, channels, packed[:n])
            tiles.filters(packed, weights.kernel, channels, panels[first : first + n])

    in_parallel(part, len(panels), least_of(10 * side * side * channels * COLUMNS))
    return Transformed(weights.kernel, filters, panels)


def _in_order(weights: Weights) -> tuple[Array, NDArray[np.int64]]:
    """Return the weights (out, taps, in) and the order of taps; an adjoint's is turned round."""
    weight = np.ascontiguousarray(weights.weight)
    taps = np.arange(weights.kernel**2)
    flat = weight.reshape(len(weight), -1, weight.shape[3])
    return flat, taps[::-1].copy() if weights.adjoint else taps


def _width(channels: int) -> int:
    """Return the numbers from a tile's channels to the next tile's.

    Whole panels, and never a multiple of 1 kB, by which the caches' sets repeat.
    """
    width = -(-channels // COLUMNS) * COLUMNS
    return width + COLUMNS if width % 256 == 0 else width


def convolve(
    x: Array,
    weights: Weights | Transformed,
    pad: tuple[int, int],
    size: tuple[int, int],
    out: Array | None,
) -> Array:
    """Convolve ``x`` (N, H, W, in) at stride 1.

    Parameters
    ----------
    x : array, C-contiguous
    weights : Weights or Transformed
    pad : (rows above, columns left)
        Zeros in front; those behind follow from ``size``.
    size : (rows, columns) of the result
    out : array (N, rows, columns, out), C-contiguous, optional
        The result is added to it; without it a new array is made.
    """
    kernel = weights.kernel
    filters = weights.channels[1] if isinstance(weights, Weights) else weights.filters
    add = out is not None
    y = out if out is not None else np.empty((len(x), *size, filters), x.dtype)
    points = (kernel + M - 1) ** 2
    number = len(x) * -(-size[0] // M) * -(-size[1] // M)
    width = _width(x.shape[3])
    panels = -(-filters // COLUMNS)
    if not number:
        return y
    if number * points * width * x.itemsize <= FEW and number < 32 * panels:
        _by_filters(x, weights, pad, y, add, number, width)
        return y
    u = weights if isinstance(weights, Transformed) else transform(weights, "u")
    sums = _width(filters)
    block = _block(points * (width + sums) * x.itemsize)

    def part(start: int, stop: int) -> None:
        here = min(block, stop - start)
        v = scratch("v", (points, here * width + COLUMNS), x.dtype)
        products = scratch("products", (points, here * sums + COLUMNS), x.dtype)
        table, spare = _tables(kernel, here, x)
        for first in range(start, stop, here):
            last = min(first + here, stop)
            tiles.inputs(x, v, width, kernel, *pad, *y.shape[1:3], first, last, first, spare)
            tiles.products(v, width, u.panels, products, sums, last - first, 0, x.shape[3], table)
            tiles.outputs(products, sums, kernel, y, 0, filters, first, last, add, spare)

    work = 2 * points * x.shape[3] * filters
    in_parallel(part, number, least=max(2 * ROWS, least_of(work)))
    return y


def _block(n_bytes: int) -> int:
    """Return how many tiles of so many bytes make a block: whole rows of products."""
    return min(16, max(2, BLOCK // (n_bytes * ROWS))) * ROWS


def _tables(kernel: int, number: int, like: Array) -> tuple[NDArray[np.int64], Array]:
    """Return room for the microkernel's table, and for a tile that reaches over an edge."""
    table = scratch("tile table", (-(-number // ROWS), SEGMENT + ROWS), np.int64)
    return table, scratch("spare tile", ((kernel + M - 1) ** 2, tiles.CHUNK), like.dtype)


def _by_filters(
    x: Array,
    weights: Weights | Transformed,
    pad: tuple[int, int],
    y: Array,
    add: bool,
    number: int,
    width: int,
) -> None:
    """Convolve few tiles: all are transformed first, then each panel of filters is used up.

    With 512 channels a filter's 36 points take longer to fetch from memory than to compute.
    """
    kernel, channels, filters = weights.kernel, x.shape[3], y.shape[3]
    points = (kernel + M - 1) ** 2
    v = scratch("all v", (points, number * width + COLUMNS), x.dtype)

    def transform_tiles(start: int, stop: int) -> None:
        _, spare = _tables(kernel, 1, x)
        tiles.inputs(x, v, width, kernel, *pad, *y.shape[1:3], start, stop, 0, spare)

    in_parallel(transform_tiles, number, least_of(10 * points * channels))
    ordered = _in_order(weights) if isinstance(weights, Weights) else None
    deep = max(LANES, PANELS // (TOGETHER * points * COLUMNS * x.itemsize) // LANES * LANES)
    if ordered is None:
        deep = channels

    def multiply_panels(start: int, stop: int) -> None:
        table, spare = _tables(kernel, number, x)
        columns = TOGETHER * COLUMNS
        products = scratch("products", (points, number * columns + COLUMNS), x.dtype)
        packed = scratch("packed", (TOGETHER, kernel**2, deep + 1, COLUMNS), x.dtype)
        panels = scratch("some panels", (TOGETHER, points, deep + 1, COLUMNS), x.dtype)
        for j in range(start, stop, TOGETHER):
            n = min(TOGETHER, stop - j)
            for first in range(0, channels, deep):
                last = min(first + deep, channels)
                if isinstance(weights, Transformed):
                    own = weights.panels[j : j + n]
                elif ordered is not None:
                    own = panels[:n]
                    pack(*ordered, weights.adjoint, j * COLUMNS, first, last, packed[:n])
                    tiles.filters(packed[:n], kernel, last - first, own)
                tiles.products(v, width, own, products, columns, number, first, last - first, table)
            first, last = j * COLUMNS, min((j + n) * COLUMNS, filters)
            tiles.outputs(products, columns, kernel, y, first, last, 0, number, add, spare)

    work = 2 * points * channels * COLUMNS * (number + 5)  # filters are transformed as well
    in_parallel(multiply_panels, -(-filters // COLUMNS), least_of(work))


def weight_gradient(x: Array, dy: Array, kernel: int, pad: tuple[int, int]) -> Array:
    """Gradient (out, k, k, in) of a convolution of ``x`` (N, H, W, in) to its weights.

    ``dy`` (N, rows, columns, out) is the gradient to its result; both are C-contiguous.
    """
    channels, filters = x.shape[3], dy.shape[3]
    points = (kernel + M - 1) ** 2
    number = len(x) * -(-dy.shape[1] // M) * -(-dy.shape[2] // M)
    dw = np.empty((filters, kernel, kernel, channels), x.dtype)
    if not number:
        dw[:] = 0
        return dw
    width, sums = _width(channels), _width(filters)
    block = max(LEAST, SUMMED // (points * (width + sums) * x.itemsize))
    block = -(-number // -(-number // block))  # all blocks about as long
    v = scratch("all v", (points, block * width + COLUMNS), x.dtype)
    z = scratch("all z", (points, block * sums + COLUMNS), x.dtype)
    # In one go, a few filters' sums are folded to weights at once; else all wait for the last.
    kept = None
    if block < number:
        kept = scratch("sums", (points, filters + 1, _width(channels)), x.dtype)
    for first in range(0, number, block):
        last = min(first + block, number)
        in_parallel(
            _gradient_tiles(x, dy, v, z, width, sums, kernel, pad, first), last - first,
            least_of(10 * points * (channels + filters)),
        )  # fmt: skip
        fold = _gradient_sums(v, z, width, sums, last - first, kept, dw, first, last == number)
        work = 2 * points * (last - first) * channels * ROWS
        in_parallel(fold, -(-filters // ROWS), least_of(work))
    return dw


def _gradient_tiles(  # type: ignore[no-untyped-def]
    x, dy, v, z, width, sums, kernel, pad, first
) -> Callable[[int, int], None]:
    def part(start: int, stop: int) -> None:
        _, spare = _tables(kernel, 1, x)
        rows, columns, begin, end = dy.shape[1], dy.shape[2], first + start, first + stop
        tiles.inputs(x, v, width, kernel, *pad, rows, columns, begin, end, first, spare)
        tiles.gradients(dy, z, sums, kernel, begin, end, first, spare)

    return part


def _gradient_sums(  # type: ignore[no-untyped-def]
    v, z, width, sums, count, kept, dw, first, last
) -> Callable[[int, int], None]:
    def part(start: int, stop: int) -> None:
        table, spare = _tables(dw.shape[1], 1, v)
        du = kept
        if du is None:
            du = scratch("few sums", (len(v), FOLDED * ROWS + 1, width), v.dtype)
        tiles.sums(v, width, z, sums, count, du, dw, first > 0, last, start, stop, table, spare)

    return part
