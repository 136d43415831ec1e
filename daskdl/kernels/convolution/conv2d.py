"""Convolution 2-D, channels last: picks Winograd, a matrix product, direct or depthwise sums."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution import depthwise, direct, winograd
from daskdl.kernels.convolution import few_channels as stem
from daskdl.kernels.convolution import few_filters as neighbours
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.matmul import matmul
from daskdl.kernels.runtime.memory import empty

Array = NDArray[np.floating]


def forward(x: Array, weight: Array, geometry: Geometry, out: Array | None = None) -> Array:
    """Convolve ``x`` (N, H, W, in) with ``weight`` (out, kh, kw, in / groups).

    Parameters
    ----------
    out : array (N, rows, columns, out), C-contiguous, optional
        The result is added to it, in place.

    Returns
    -------
    array (N, rows, columns, out)
    """
    x, weight = _plain(x), _plain(weight)
    size = geometry.size(*x.shape[1:3])
    if _by_winograd(weight, geometry):
        own = winograd.Weights(weight, False)
        return winograd.convolve(x, own, _first_pad(geometry), size, out)
    y = empty((len(x), *size, len(weight)), x.dtype) if out is None else out
    n = neighbours.together(geometry, len(weight), size[1])
    if n > 1:
        _forward_joined(x, weight, geometry, n, y, out is not None)
    else:
        _forward(x, weight, geometry, y, out is not None)
    return y


def _forward(x: Array, weight: Array, geometry: Geometry, y: Array, add: bool) -> None:
    if stem.serves(geometry, x.shape[3]):
        stem.forward(x, weight, geometry, y, add)
    else:
        _products(weight, geometry).forward(x, weight, geometry, y, add)


def _forward_joined(
    x: Array, weight: Array, geometry: Geometry, n: int, y: Array, add: bool
) -> None:
    """Write, or add, to y what ``n`` neighbouring windows at a time see."""
    images, rows, columns, filters = y.shape
    weight, geometry = neighbours.joined(weight, geometry, columns, n)
    even = columns % n == 0
    windows = (images, rows, -(-columns // n), n * filters)
    results = y.reshape(windows) if even else empty(windows, y.dtype)
    _forward(x, weight, geometry, results, even and add)
    if not even:
        own = results.reshape(images, rows, windows[2] * n, filters)[:, :, :columns]
        np.add(y, own, out=y) if add else np.copyto(y, own)


def prepared(weight: Array, geometry: Geometry) -> Callable[[Array, Array], Array]:
    """Return ``forward`` with its weights transformed once, for a sequence of calls.

    The function takes ``x`` and the array that the result is added to.
    """
    if not _by_winograd(weight, geometry):
        return lambda x, out: forward(x, weight, geometry, out)
    u, pad = winograd.transform(winograd.Weights(_plain(weight), False)), _first_pad(geometry)
    return lambda x, out: winograd.convolve(_plain(x), u, pad, (out.shape[1], out.shape[2]), out)


def input_gradient(dy: Array, weight: Array, geometry: Geometry, height: int, width: int) -> Array:
    """Gradient to the input (N, height, width, in), from ``dy`` (N, rows, columns, out)."""
    dy, weight = _plain(dy), _plain(weight)
    if _by_winograd(weight, geometry):
        adjoint = winograd.Weights(weight, True)
        return winograd.convolve(dy, adjoint, _first_pad(geometry.adjoint), (height, width), None)
    turned, channels = geometry.adjoint, weight.shape[3]
    if geometry.stride == (1, 1) and neighbours.together(turned, channels, width) > 1:
        return forward(dy, weight[:, ::-1, ::-1].transpose(3, 1, 2, 0), turned)
    dx = np.empty((len(dy), height, width, weight.shape[3] * geometry.groups), dy.dtype)
    _products(weight, geometry).input_gradient(dy, weight, geometry, dx)
    return dx


def prepared_adjoint(weight: Array, geometry: Geometry) -> Callable[[Array], Array]:
    """Return ``input_gradient`` of a size-keeping convolution, its weights transformed once."""
    if not _by_winograd(weight, geometry):
        return lambda dy: input_gradient(dy, weight, geometry, *dy.shape[1:3])
    u = winograd.transform(winograd.Weights(_plain(weight), True))
    pad = _first_pad(geometry.adjoint)
    return lambda dy: winograd.convolve(_plain(dy), u, pad, (dy.shape[1], dy.shape[2]), None)


def _plain(array: Array) -> Array:
    """Return the array, or a copy where it is not one that kernels are compiled for.

    numba would compile everything again for read-only arrays, as they come from files.
    """
    return array if array.flags.carray else np.require(array, requirements=("C", "A", "W"))


def _by_winograd(weight: Array, geometry: Geometry) -> bool:
    return geometry.by_winograd(min(weight.shape[0], weight.shape[3]))


def _products(weight: Array, geometry: Geometry) -> ModuleType:
    return depthwise if geometry.groups == len(weight) and weight.shape[3] == 1 else direct


def _first_pad(geometry: Geometry) -> tuple[int, int]:
    """Return the zeros above and left."""
    return geometry.pad[0], geometry.pad[2]


def weight_gradient(x: Array, dy: Array, geometry: Geometry) -> Array:
    """Gradient to the weights (out, kh, kw, in / groups)."""
    filters, channels = dy.shape[3], x.shape[3]
    if geometry.pointwise and geometry.groups == 1:
        dw = matmul(dy.reshape(-1, filters).T, x.reshape(-1, channels))
        return dw.reshape(filters, 1, 1, channels)
    x, dy = _plain(x), _plain(dy)
    if geometry.by_winograd(min(channels, filters)):
        return winograd.weight_gradient(x, dy, geometry.kernel[0], _first_pad(geometry))
    if geometry.groups == channels == filters:
        return depthwise.weight_gradient(x, dy, geometry)
    if stem.serves(geometry, channels):
        return stem.weight_gradient(x, dy, geometry)
    return direct.weight_gradient(x, dy, geometry)
