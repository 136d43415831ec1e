"""Convolution 2-D, channels last: picks Winograd, a matrix product, direct or depthwise sums."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels import depthwise, direct, stem, winograd
from daskdl.kernels.geometry import Geometry
from daskdl.kernels.matmul import matmul
from daskdl.kernels.memory import empty

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
        pad = geometry.pad[0], geometry.pad[2]
        return winograd.convolve(x, winograd.Weights(weight, False), pad, size, out)
    y = empty((len(x), *size, len(weight)), x.dtype) if out is None else out
    if stem.serves(geometry, x.shape[3]):
        stem.forward(x, weight, geometry, y, out is not None)
    else:
        _products(weight, geometry).forward(x, weight, geometry, y, out is not None)
    return y


def prepared(weight: Array, geometry: Geometry) -> Callable[[Array, Array], Array]:
    """Return ``forward`` with its weights transformed once, for a sequence of calls.

    The function takes ``x`` and the array that the result is added to.
    """
    if not _by_winograd(weight, geometry):
        return lambda x, out: forward(x, weight, geometry, out)
    u = winograd.transform(winograd.Weights(_plain(weight), False))
    pad = geometry.pad[0], geometry.pad[2]
    return lambda x, out: winograd.convolve(_plain(x), u, pad, (out.shape[1], out.shape[2]), out)


def input_gradient(dy: Array, weight: Array, geometry: Geometry, height: int, width: int) -> Array:
    """Gradient to the input (N, height, width, in), from ``dy`` (N, rows, columns, out)."""
    dy, weight = _plain(dy), _plain(weight)
    if _by_winograd(weight, geometry):
        adjoint = winograd.Weights(weight, True)
        return winograd.convolve(dy, adjoint, _adjoint_pad(geometry), (height, width), None)
    dx = np.empty((len(dy), height, width, weight.shape[3] * geometry.groups), dy.dtype)
    _products(weight, geometry).input_gradient(dy, weight, geometry, dx)
    return dx


def prepared_adjoint(weight: Array, geometry: Geometry) -> Callable[[Array], Array]:
    """Return ``input_gradient`` of a size-keeping convolution, its weights transformed once."""
    if not _by_winograd(weight, geometry):
        return lambda dy: input_gradient(dy, weight, geometry, *dy.shape[1:3])
    u, pad = winograd.transform(winograd.Weights(_plain(weight), True)), _adjoint_pad(geometry)
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


def _adjoint_pad(geometry: Geometry) -> tuple[int, int]:
    return geometry.kernel[0] - 1 - geometry.pad[0], geometry.kernel[1] - 1 - geometry.pad[2]


def weight_gradient(x: Array, dy: Array, geometry: Geometry) -> Array:
    """Gradient to the weights (out, kh, kw, in / groups)."""
    filters, channels = dy.shape[3], x.shape[3]
    if geometry.pointwise and geometry.groups == 1:
        dw = matmul(dy.reshape(-1, filters).T, x.reshape(-1, channels))
        return dw.reshape(filters, 1, 1, channels)
    x, dy = _plain(x), _plain(dy)
    if geometry.by_winograd(min(channels, filters)):
        pad = geometry.pad[0], geometry.pad[2]
        return winograd.weight_gradient(x, dy, geometry.kernel[0], pad)
    if geometry.groups == channels == filters:
        return depthwise.weight_gradient(x, dy, geometry)
    if stem.serves(geometry, channels):
        return stem.weight_gradient(x, dy, geometry)
    return direct.weight_gradient(x, dy, geometry)
