"""Pooling over windows of channels-last images: maxima with their places, and means.

Forward reduces each result from the cells of its window; backward reduces each pixel's gradient
from the windows over it. So every number is written once, and threads never write to one place.
Most neighbours have the same table of cells (:mod:`daskdl.kernels.pooling.cells`).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.pooling.cells import largest, sum_where
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import ALIGNMENT, empty
from daskdl.kernels.runtime.passes import drain, flat, streams
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]

#: Most pixels of an image in one sum.
TOGETHER = 1 << 8


class Windows(NamedTuple):
    """Places of windows on an image; each field is (rows, columns)."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    #: Padding in cells, (above, below, left, right).
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    #: Whether a last window may reach beyond image and padding.
    ceil_mode: bool = False

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Return the (rows, columns) of the result on an image of this size."""
        top, bottom, left, right = self.pad
        return self._along(0, height, top, bottom), self._along(1, width, left, right)

    def _along(self, axis: int, n: int, before: int, after: int) -> int:
        kernel, stride = self.kernel[axis], self.stride[axis]
        room = n + before + after - kernel
        count = (-(-room // stride) if self.ceil_mode else room // stride) + 1
        if self.ceil_mode and (count - 1) * stride >= n + before:
            count -= 1  # every window begins in the image or in the padding before it
        return max(0, count)

    @property
    def bounds(self) -> tuple[int, int, int, int, int, int]:
        """Kernel, stride, and padding above and left, as numba kernels take them."""
        return (*self.kernel, *self.stride, self.pad[0], self.pad[2])


def maxima(x: Array, windows: Windows) -> tuple[Array, Array]:
    """Return the largest number of each window of x (N, H, W, C), and its place in the window.

    The place is row times the kernel's columns plus column, of the first of equal numbers; the last
    NaN wins over all. Its dtype is the smallest unsigned one, uint8 for up to 256 cells.
    """
    places = empty(_shape(x, windows), np.min_scalar_type(math.prod(windows.kernel) - 1))
    return _reduce(x, windows, places, None), places


def maxima_alone(x: Array, windows: Windows) -> Array:
    """Return the largest number of each window as :func:`maxima` does, without its place.

    ``x`` may be bytes, whose numbers grow with them, or bfloat16 numbers, uint16, from +0 to
    infinity and NaN, which do so too.
    """
    return _reduce(x, windows, None, None)


def maxima_gradient(dy: Array, places: Array, windows: Windows, height: int, width: int) -> Array:
    """Return the gradient to x (N, height, width, C) from the gradient to the maxima."""
    where = flat(places).reshape(dy.shape)
    return _spread(dy, where, 1, windows, (height, width))


def means(
    x: Array, windows: Windows, count_include_pad: bool, of_x: tuple[float, int] | None = None
) -> Array:
    """Return the mean of each window of x (N, H, W, C).

    With (scale, zero) ``of_x``, x has bytes for numbers ``(byte - zero) * scale`` of float32.
    """
    kind = x.dtype if of_x is None else np.dtype(np.float32)
    shares = _shares(windows, x.shape[1:3], kind, count_include_pad)
    return _reduce(x, windows, None, shares, of_x)


def _shape(x: Array, windows: Windows) -> tuple[int, ...]:
    return len(x), *windows.size(*x.shape[1:3]), x.shape[3]


def _reduce(
    x: Array, windows: Windows, places: Array | None, shares: Array | None, of_x: Any = None
) -> Array:
    y = empty(_shape(x, windows), x.dtype if shares is None else shares.dtype)
    numbers = None if of_x is None else (np.float32(of_x[0]), np.float32(of_x[1]))
    source = flat(x).reshape(x.shape)
    over_range(_reduced, *_rows(y), source, y, places, shares, windows.bounds, numbers)
    return y


def means_gradient(dy: Array, windows: Windows, count_include_pad: bool, x: Array) -> Array:
    """Return the gradient to x (N, H, W, C) from the gradient to the means."""
    shares = _shares(windows, x.shape[1:3], x.dtype, count_include_pad)
    share = shares.flat[0]
    if (shares != share).any():
        dy, share = dy * shares[..., None], 1
    return _spread(flat(dy, x.dtype).reshape(dy.shape), None, share, windows, x.shape[1:3])


def global_means(x: Array, of_x: tuple[float, int] | None = None) -> Array:
    """Return the means (N, C) of whole images x (N, H, W, C), as :func:`means` does."""
    n, height, width, channels = x.shape
    whole = Windows((height, width), (1, 1))
    if height * width > TOGETHER:  # sums of rows' sums lose less than one long sum
        x, whole = means(x, Windows((1, width), (1, 1)), True, of_x), Windows((height, 1), (1, 1))
        of_x = None
    return means(x, whole, True, of_x).reshape(n, channels)


@lru_cache
def _shares(windows: Windows, size: tuple[int, ...], dtype: Any, count_include_pad: bool) -> Array:
    """Return 1 / number of cells of each window (rows, columns) on an image of this size."""
    cells = []
    for axis, count in enumerate(windows.size(size[0], size[1])):
        n, before, after = size[axis], *windows.pad[2 * axis : 2 * axis + 2]
        start = np.arange(count) * windows.stride[axis] - before
        stop = start + windows.kernel[axis]
        if count_include_pad:
            cells.append(np.minimum(stop, n + after) - start)
        else:
            cells.append(np.minimum(stop, n) - np.maximum(start, 0))
    return np.asarray(1 / np.multiply.outer(*cells), dtype)


def _rows(y: Array) -> tuple[int, int]:
    """Return the number of rows of all images y, and the least number of a part."""
    n, rows, columns, channels = y.shape
    return n * rows, grain.least(grain.STREAM, columns * channels)


def _spread(
    dy: Array, places: Array | None, share: float, windows: Windows, size: tuple[int, ...]
) -> Array:
    n, channels = len(dy), dy.shape[3]
    dx, bounds = empty((n, *size, channels), dy.dtype), windows.bounds
    gradient, share = flat(dy).reshape(dy.shape), dy.dtype.type(share)
    past = streams(dx) and channels * dx.itemsize % ALIGNMENT == 0
    over_range(_gradient, *_rows(dx), gradient, dx, places, share, bounds, past)
    return dx


@jit
def _cells(table, part, kw, width, channels):
    """Fill the table with a part (first row, last, first column, last) of a window's cells."""
    count = 0
    for p in range(part[0], part[1]):
        for q in range(part[2], part[3]):
            table[count, 0] = (p * width + q) * channels
            table[count, 1] = p * kw + q
            count += 1
    return count


@jit
def _reduced(x, y, places, shares, bounds, of_x, which, start, stop):
    """Compute rows ``start`` to ``stop`` of all images of y: means, or maxima without shares."""
    kh, kw, down, across, top, left = bounds
    _, height, width, channels = x.shape
    _, rows, columns, _ = y.shape
    table = np.empty((kh * kw, 2), np.int64)
    before, count = (0, 0, 0, 0), 0
    for row in range(start, stop):
        n, i = row // rows, row % rows
        h = i * down - top
        for j in range(columns):
            w = j * across - left
            part = max(0, -h), min(kh, height - h), max(0, -w), min(kw, width - w)
            if part != before:
                before, count = part, _cells(table, part, kw, width, channels)
            source = ((n * height + h) * width + w) * channels
            target = (row * columns + j) * channels
            if shares is None:
                largest(x, y, places, table, count, channels, source, target)
            else:
                share = shares[i, j]
                sum_where(x, y, None, table, count, channels, source, target, share, False, of_x)


@jit
def _gradient(dy, dx, places, share, bounds, past, which, start, stop):
    """Compute rows ``start`` to ``stop`` of all images of dx; ``places`` is None for means."""
    kh, kw, down, across, top, left = bounds
    _, height, width, channels = dx.shape
    _, rows, columns, _ = dy.shape
    table = np.empty((kh * kw, 2), np.int64)
    for row in range(start, stop):
        n, h = row // height, row % height + top
        # Windows over a pixel begin at most a kernel's size before it.
        i0, i1 = max(0, (h - kh) // down + 1), min(rows, h // down + 1)
        # Pixels a stride apart have the same places in their windows.
        for first in range(left, left + min(across, width)):
            begin, end, lag, many, count = (first - kw) // across + 1, first // across + 1, 0, -1, 0
            for w in range(first, left + width, across):
                j0, j1 = max(0, begin), min(columns, end)
                begin += 1
                end += 1
                if w - j0 * across != lag or j1 - j0 != many:
                    lag, many, count = w - j0 * across, j1 - j0, 0
                    for i in range(i0, i1):
                        for j in range(many):
                            table[count, 0] = ((i - i0) * columns + j) * channels
                            table[count, 1] = (h - i * down) * kw + lag - j * across
                            count += 1
                source = ((n * rows + i0) * columns + j0) * channels
                target = (row * width + w - left) * channels
                sum_where(dy, dx, places, table, count, channels, source, target, share, past, None)
    drain(True)
