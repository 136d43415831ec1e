"""Convolution 2-D, channels last: picks Winograd, a plain matrix product or im2col in blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels import winograd

Array = NDArray[np.floating]

#: Bytes of the im2col buffer; a block of rows that fits is multiplied at once.
BUFFER = 4 << 20


class Geometry(NamedTuple):
    """Where the windows of a convolution lie: (rows, columns) of each."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    #: Zeros (above, below, left, right).
    pad: tuple[int, int, int, int]

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Return the (rows, columns) of the result on an image of this size."""
        top, bottom, left, right = self.pad
        return (
            (height + top + bottom - self.kernel[0]) // self.stride[0] + 1,
            (width + left + right - self.kernel[1]) // self.stride[1] + 1,
        )

    @property
    def pointwise(self) -> bool:
        """Whether the result is one matrix product over the channels."""
        return self.kernel == (1, 1) and self.stride == (1, 1) and not any(self.pad)

    def by_winograd(self, channels: int) -> bool:
        """Whether Winograd serves; with few channels its transforms cost more than they save."""
        return self.kernel in ((3, 3), (5, 5)) and self.stride == (1, 1) and channels >= 8


def forward(x: Array, weight: Array, geometry: Geometry, out: Array | None = None) -> Array:
    """Convolve ``x`` (N, H, W, in) with ``weight`` (out, kh, kw, in) -> (N, rows, columns, out).

    With ``out`` the result is added to it, in place.
    """
    size = geometry.size(*x.shape[1:3])
    if geometry.by_winograd(min(x.shape[3], weight.shape[0])):
        u = winograd.transform_weights(weight)
        pad = geometry.pad[0], geometry.pad[2]
        return winograd.convolve(np.ascontiguousarray(x), u, weight.shape[1], pad, size, out)
    matrix = weight.reshape(weight.shape[0], -1).T
    if geometry.pointwise:
        y = x @ matrix
    else:
        y = np.empty((x.shape[0], *size, weight.shape[0]), x.dtype)
        windows = _windows(_padded(x, geometry), geometry, size)
        flat = y.reshape(-1, size[1], weight.shape[0])
        for rows, columns in _blocks(windows):
            np.matmul(columns, matrix, out=flat[rows].reshape(-1, weight.shape[0]))
    if out is None:
        return y
    out += y
    return out


def prepared(weight: Array, geometry: Geometry) -> Callable[[Array, Array], Array]:
    """Return ``forward`` with its weights transformed once, for a sequence of calls.

    The function takes ``x`` and the array that the result is added to.
    """
    if not geometry.by_winograd(min(weight.shape[3], weight.shape[0])):
        return lambda x, out: forward(x, weight, geometry, out)
    u, pad = winograd.transform_weights(weight), (geometry.pad[0], geometry.pad[2])
    kernel = weight.shape[1]
    return lambda x, out: winograd.convolve(x, u, kernel, pad, out.shape[1:3], out)


def prepared_adjoint(weight: Array, geometry: Geometry) -> Callable[[Array], Array]:
    """Return ``input_gradient`` of a size-keeping convolution, its weights transformed once."""
    if not geometry.by_winograd(min(weight.shape[0], weight.shape[3])):
        return lambda dy: input_gradient(dy, weight, geometry, *dy.shape[1:3])
    u, kernel = winograd.transform_weights_adjoint(weight), weight.shape[1]
    pad = kernel - 1 - geometry.pad[0], kernel - 1 - geometry.pad[2]
    return lambda dy: winograd.convolve(dy, u, kernel, pad, dy.shape[1:3], None)


def input_gradient(dy: Array, weight: Array, geometry: Geometry, height: int, width: int) -> Array:
    """Gradient to the input (N, height, width, in), from ``dy`` (N, rows, columns, out)."""
    kernel, (top, _, left, _) = weight.shape[1], geometry.pad
    if geometry.by_winograd(min(weight.shape[0], weight.shape[3])):
        u = winograd.transform_weights_adjoint(weight)
        pad = kernel - 1 - top, kernel - 1 - left
        return winograd.convolve(np.ascontiguousarray(dy), u, kernel, pad, (height, width), None)
    if geometry.pointwise:
        return dy @ weight.reshape(weight.shape[0], -1)
    above, below, before, behind = geometry.pad
    shape = (dy.shape[0], height + above + below, width + before + behind, weight.shape[3])
    dx = np.zeros(shape, dy.dtype)
    (rows, columns), (down, across) = dy.shape[1:3], geometry.stride
    for i in range(geometry.kernel[0]):
        for j in range(geometry.kernel[1]):
            reached = np.s_[:, i : i + rows * down : down, j : j + columns * across : across]
            dx[reached] += dy @ weight[:, i, j]
    return dx[:, above : above + height, before : before + width]


def weight_gradient(x: Array, dy: Array, geometry: Geometry) -> Array:
    """Gradient to the weights (out, kh, kw, in)."""
    filters, channels = dy.shape[3], x.shape[3]
    if geometry.by_winograd(min(channels, filters)):
        pad = geometry.pad[0], geometry.pad[2]
        return winograd.weight_gradient(
            np.ascontiguousarray(x), np.ascontiguousarray(dy), geometry.kernel[0], pad
        )
    flat = dy.reshape(-1, dy.shape[2], filters)
    if geometry.pointwise:
        dw = dy.reshape(-1, filters).T @ x.reshape(-1, channels)
    else:
        windows = _windows(_padded(x, geometry), geometry, dy.shape[1:3])
        dw = np.zeros((filters, channels * geometry.kernel[0] * geometry.kernel[1]), x.dtype)
        for rows, columns in _blocks(windows):
            dw += flat[rows].reshape(-1, filters).T @ columns
    return dw.reshape(filters, *geometry.kernel, channels)


def _padded(x: Array, geometry: Geometry) -> Array:
    top, bottom, left, right = geometry.pad
    if not any(geometry.pad):
        return np.ascontiguousarray(x)
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))


def _windows(x: Array, geometry: Geometry, size: tuple[int, ...]) -> Array:
    """View ``x`` as (N, rows, columns, kh, kw, C) without copying."""
    n, down, across, channel = x.strides
    (stride_down, stride_across), (kh, kw) = geometry.stride, geometry.kernel
    return np.lib.stride_tricks.as_strided(
        x,
        (x.shape[0], size[0], size[1], kh, kw, x.shape[3]),
        (n, down * stride_down, across * stride_across, down, across, channel),
        writeable=False,
    )


def _blocks(windows: Array):  # type: ignore[no-untyped-def]
    """Yield (slice of image rows, their im2col matrix), each matrix at most ``BUFFER`` bytes."""
    n, rows, columns = windows.shape[:3]
    length = math.prod(windows.shape[3:])
    step = max(1, BUFFER // (columns * length * windows.itemsize))
    for image in range(n):
        for start in range(0, rows, step):
            stop = min(rows, start + step)
            matrix = windows[image, start:stop].reshape(-1, length)
            yield slice(image * rows + start, image * rows + stop), matrix
