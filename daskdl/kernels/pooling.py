"""Pooling over windows of channels-last images: maxima with their places, and means.

All loops inside run over channels. Forward takes three cells of a window at a time, so that what
is found so far is read and written a third as often; backward collects, for each input pixel, from
the windows over it, so that each number is written once and threads never meet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.jit import jit
from daskdl.kernels.memory import empty
from daskdl.kernels.passes import flat
from daskdl.kernels.threads import in_parallel

Array = NDArray[Any]

#: Numbers below which a second thread costs more than it brings.
LEAST = 1 << 14


class Windows(NamedTuple):
    """Where windows lie on an image: (rows, columns) of each."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    #: Cells (above, below, left, right) that belong to no image.
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
        """Return kernel, stride and padding before, as kernels of numba take them."""
        return (*self.kernel, *self.stride, self.pad[0], self.pad[2])


def maxima(x: Array, windows: Windows) -> tuple[Array, Array]:
    """Return the largest number of each window and where in the window it lies.

    Parameters
    ----------
    x : array (N, H, W, C)
    windows : Windows

    Returns
    -------
    y : array (N, rows, columns, C)
    places : unsigned integers of y's shape
        Row times the kernel's columns plus column, of the first of equals; the last NaN wins over
        all. In the smallest type that serves, uint8 for windows of up to 256 cells.
    """
    n, height, width, channels = x.shape
    rows, columns = windows.size(height, width)
    cells = windows.kernel[0] * windows.kernel[1]
    y = empty((n, rows, columns, channels), x.dtype)
    places = empty(y.shape, np.min_scalar_type(cells - 1))
    source = flat(x).reshape(x.shape)
    in_parallel(
        lambda i, j: _maxima(source, y, places, *windows.bounds, i, j),
        n * rows,
        least=1 + LEAST // max(1, columns * channels),
    )
    return y, places


def maxima_gradient(dy: Array, places: Array, windows: Windows, height: int, width: int) -> Array:
    """Return the gradient to x (N, height, width, C) from that to the maxima."""
    n, _, _, channels = dy.shape
    dx = empty((n, height, width, channels), dy.dtype)
    gradient, where = flat(dy).reshape(dy.shape), flat(places).reshape(dy.shape)
    in_parallel(
        lambda i, j: _maxima_gradient(gradient, where, dx, *windows.bounds, i, j),
        n * height,
        least=1 + LEAST // max(1, width * channels),
    )
    return dx


def means(x: Array, windows: Windows, count_include_pad: bool) -> Array:
    """Return the mean of each window of x (N, H, W, C)."""
    n, height, width, channels = x.shape
    rows, columns = windows.size(height, width)
    y = empty((n, rows, columns, channels), x.dtype)
    source, shares = flat(x).reshape(x.shape), _shares(x, windows, count_include_pad)
    in_parallel(
        lambda i, j: _means(source, y, *shares, *windows.bounds, i, j),
        n * rows,
        least=1 + LEAST // max(1, columns * channels),
    )
    return y


def means_gradient(dy: Array, windows: Windows, count_include_pad: bool, x: Array) -> Array:
    """Return the gradient to x (N, H, W, C) from that to the means."""
    n, height, width, channels = x.shape
    dx, gradient = empty(x.shape, x.dtype), flat(dy, x.dtype).reshape(dy.shape)
    shares = _shares(x, windows, count_include_pad)
    in_parallel(
        lambda i, j: _means_gradient(gradient, dx, *shares, *windows.bounds, i, j),
        n * height,
        least=1 + LEAST // max(1, width * channels),
    )
    return dx


def _shares(x: Array, windows: Windows, count_include_pad: bool) -> tuple[Array, Array]:
    """Return 1 / rows of each row of windows, and 1 / columns of each column of them."""
    shares = []
    for axis, count in enumerate(windows.size(*x.shape[1:3])):
        n, before, after = x.shape[1 + axis], *windows.pad[2 * axis : 2 * axis + 2]
        start = np.arange(count) * windows.stride[axis] - before
        stop = start + windows.kernel[axis]
        if count_include_pad:
            cells = np.minimum(stop, n + after) - start
        else:
            cells = np.minimum(stop, n) - np.maximum(start, 0)
        shares.append((1 / cells).astype(x.dtype))
    return shares[0], shares[1]


@jit
def _three(x, a, b, c, ia, ib, ic, best, place):  # type: ignore[no-untyped-def]
    """Let the channels from places a, b and c of the vector x compete with the best so far."""
    for k in range(best.size):
        p = np.uintp(k)
        high, at = best[p], place[p]
        v = x[np.uintp(a + k)]
        more = (v > high) | (v != v)
        high, at = v if more else high, ia if more else at
        v = x[np.uintp(b + k)]
        more = (v > high) | (v != v)
        high, at = v if more else high, ib if more else at
        v = x[np.uintp(c + k)]
        more = (v > high) | (v != v)
        high, at = v if more else high, ic if more else at
        best[p], place[p] = high, at


@jit
def _maxima(x, y, places, kh, kw, down, across, top, left, start, stop):  # type: ignore[no-untyped-def]
    """Do the rows ``start`` to ``stop`` of all rows of all images of y."""
    _, height, width, channels = x.shape
    _, rows, columns, _ = y.shape
    best, place = np.empty(channels, x.dtype), np.empty(channels, np.int32)
    numbers, results, wheres = x.reshape(x.size), y.reshape(y.size), places.reshape(places.size)
    for row in range(start, stop):
        n, i = row // rows, row % rows
        for j in range(columns):
            h, w = i * down - top, j * across - left
            p0, p1, q0, q1 = max(0, -h), min(kh, height - h), max(0, -w), min(kw, width - w)
            best[:] = -np.inf
            place[:] = p0 * kw + q0
            for p in range(p0, p1):
                line = ((n * height + h + p) * width + w) * channels
                for q in range(q0, q1, 3):  # at the end, the last cell takes part again
                    a, b, c = q, min(q + 1, q1 - 1), min(q + 2, q1 - 1)
                    _three(
                        numbers, line + a * channels, line + b * channels, line + c * channels,
                        np.int32(p * kw + a), np.int32(p * kw + b), np.int32(p * kw + c),
                        best, place,
                    )  # fmt: skip
            to = (row * columns + j) * channels
            for k in range(channels):
                results[np.uintp(to + k)] = best[k]
            for k in range(channels):
                wheres[np.uintp(to + k)] = place[k]


@jit
def _collect(dy, places, at, place, total):  # type: ignore[no-untyped-def]
    """Add the gradients from ``at`` on of those windows whose maximum lies at ``place``."""
    zero = total.dtype.type(0)
    for k in range(total.size):
        g = dy[np.uintp(at + k)]
        total[k] += g if places[np.uintp(at + k)] == place else zero


@jit
def _maxima_gradient(dy, places, dx, kh, kw, down, across, top, left, start, stop):  # type: ignore[no-untyped-def]
    """Do the rows ``start`` to ``stop`` of all rows of all images of dx."""
    _, height, width, channels = dx.shape
    _, rows, columns, _ = dy.shape
    gradients, wheres, results = dy.reshape(dy.size), places.reshape(dy.size), dx.reshape(dx.size)
    total = np.empty(channels, dx.dtype)
    for row in range(start, stop):
        n, h = row // height, row % height + top
        for w in range(left, width + left):
            total[:] = 0
            # Windows that begin at most a kernel's size before the pixel.
            for i in range(max(0, (h - kh) // down + 1), min(rows, h // down + 1)):
                for j in range(max(0, (w - kw) // across + 1), min(columns, w // across + 1)):
                    at = ((n * rows + i) * columns + j) * channels
                    place = (h - i * down) * kw + w - j * across
                    _collect(gradients, wheres, at, places.dtype.type(place), total)
            to = (row * width + w - left) * channels
            for k in range(channels):
                results[np.uintp(to + k)] = total[k]


@jit
def _add(x, at, factor, total):  # type: ignore[no-untyped-def]
    for k in range(total.size):
        total[k] += factor * x[np.uintp(at + k)]


@jit
def _means(x, y, down_shares, across_shares, kh, kw, down, across, top, left, start, stop):  # type: ignore[no-untyped-def]
    """Do the rows ``start`` to ``stop`` of all rows of all images of y."""
    _, height, width, channels = x.shape
    _, rows, columns, _ = y.shape
    numbers, results = x.reshape(x.size), y.reshape(y.size)
    total, one = np.empty(channels, x.dtype), x.dtype.type(1)
    for row in range(start, stop):
        n, i = row // rows, row % rows
        for j in range(columns):
            h, w = i * down - top, j * across - left
            total[:] = 0
            for p in range(max(0, -h), min(kh, height - h)):
                for q in range(max(0, -w), min(kw, width - w)):
                    at = ((n * height + h + p) * width + w + q) * channels
                    _add(numbers, at, one, total)
            to, share = (row * columns + j) * channels, down_shares[i] * across_shares[j]
            for k in range(channels):
                results[np.uintp(to + k)] = total[k] * share


@jit
def _means_gradient(  # type: ignore[no-untyped-def]
    dy, dx, down_shares, across_shares, kh, kw, down, across, top, left, start, stop
):
    """Do the rows ``start`` to ``stop`` of all rows of all images of dx."""
    _, height, width, channels = dx.shape
    _, rows, columns, _ = dy.shape
    gradients, results = dy.reshape(dy.size), dx.reshape(dx.size)
    total = np.empty(channels, dx.dtype)
    for row in range(start, stop):
        n, h = row // height, row % height + top
        for w in range(left, width + left):
            total[:] = 0
            for i in range(max(0, (h - kh) // down + 1), min(rows, h // down + 1)):
                for j in range(max(0, (w - kw) // across + 1), min(columns, w // across + 1)):
                    at = ((n * rows + i) * columns + j) * channels
                    _add(gradients, at, down_shares[i] * across_shares[j], total)
            to = (row * width + w - left) * channels
            for k in range(channels):
                results[np.uintp(to + k)] = total[k]
