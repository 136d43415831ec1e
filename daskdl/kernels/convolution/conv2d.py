"""2-D convolution, channels last, by the fastest of five ways for each shape; see :data:`WAYS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution import depthwise, direct, few_channels, few_filters, winograd
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.matmul import matmul
from daskdl.kernels.runtime.memory import empty

Array = NDArray[np.floating]

#: Shapes that each way serves: tests of geometry, input channels, filters, and columns of a row of
#: results. :mod:`few_filters` joins neighbouring windows, which another way then convolves.
SERVES: dict[str, Callable[[Geometry, int, int, int], bool]] = {
    # 1x1 at stride 1 without padding: a matrix product over the pixels.
    "matmul": lambda g, channels, filters, columns: g.pointwise and g.groups == 1,
    # 3x3 and 5x5 at stride 1, at least 8 channels and filters.
    "winograd": lambda g, channels, filters, columns: g.by_winograd(min(channels, filters)),
    # So few filters, in one group, that most columns of a product would be idle.
    "few_filters": lambda g, channels, filters, columns: (
        few_filters.together(g, filters, columns) > 1
    ),
    # Fewer than 16 input channels in one group, windows of at most 800 numbers: first layers.
    "few_channels": lambda g, channels, filters, columns: few_channels.serves(g, channels),
    # A group for each channel and each filter.
    "depthwise": lambda g, channels, filters, columns: g.groups == channels == filters,
    # Any kernel, stride, dilation, padding and groups.
    "direct": lambda g, channels, filters, columns: True,
}
#: Ways of each pass, in order: the first that serves a shape computes it.
WAYS = {
    "forward": ("winograd", "few_filters", "few_channels", "depthwise", "direct"),
    "joined": ("few_channels", "direct"),  # windows that few_filters has joined
    "input_gradient": ("winograd", "few_filters", "depthwise", "direct"),
    "weight_gradient": ("matmul", "winograd", "depthwise", "few_channels", "direct"),
}
_MODULES: dict[str, Any] = {
    "few_channels": few_channels,
    "depthwise": depthwise,
    "direct": direct,
}


def way(task: str, geometry: Geometry, channels: int, filters: int, columns: int = 1) -> str:
    """Return the name of the way that computes a shape in a pass, see :data:`WAYS`."""
    return next(name for name in WAYS[task] if SERVES[name](geometry, channels, filters, columns))


def forward(x: Array, weight: Array, geometry: Geometry, out: Array | None = None) -> Array:
    """Convolve ``x`` (N, H, W, in) with ``weight`` (out, kh, kw, in / groups).

    The result is (N, rows, columns, out). With ``out``, C-contiguous, it is added there, in place.
    """
    x, weight = _plain(x), _plain(weight)
    size = geometry.size(*x.shape[1:3])
    chosen = way("forward", geometry, x.shape[3], len(weight), size[1])
    if chosen == "winograd":
        transformed = winograd.Weights(weight, False)
        return winograd.convolve(x, transformed, _first_pad(geometry), size, out)
    y = empty((len(x), *size, len(weight)), x.dtype) if out is None else out
    if chosen == "few_filters":
        _forward_joined(x, weight, geometry, y, out is not None)
    else:
        _MODULES[chosen].forward(x, weight, geometry, y, out is not None)
    return y


def _forward_joined(x: Array, weight: Array, geometry: Geometry, y: Array, add: bool) -> None:
    """Write, or add, the results of joined neighbouring windows to y."""
    images, rows, columns, filters = y.shape
    n = few_filters.together(geometry, filters, columns)
    weight, geometry = few_filters.joined(weight, geometry, columns, n)
    even = columns % n == 0
    windows = (images, rows, -(-columns // n), n * filters)
    results = y.reshape(windows) if even else empty(windows, y.dtype)
    chosen = _MODULES[way("joined", geometry, x.shape[3], len(weight))]
    chosen.forward(x, weight, geometry, results, even and add)
    if not even:
        separate = results.reshape(images, rows, windows[2] * n, filters)[:, :, :columns]
        np.add(y, separate, out=y) if add else np.copyto(y, separate)


def prepared(weight: Array, geometry: Geometry) -> Callable[[Array, Array], Array]:
    """Return ``forward`` with its weights transformed once, for a sequence of calls.

    The returned function takes ``x`` and the array to which it adds the result.
    """
    if not _by_winograd(weight, geometry):
        return lambda x, out: forward(x, weight, geometry, out)
    u, pad = winograd.transform(winograd.Weights(_plain(weight), False)), _first_pad(geometry)
    return lambda x, out: winograd.convolve(_plain(x), u, pad, (out.shape[1], out.shape[2]), out)


def input_gradient(dy: Array, weight: Array, geometry: Geometry, height: int, width: int) -> Array:
    """Return the gradient to x (N, height, width, in) from ``dy`` (N, rows, columns, out)."""
    dy, weight = _plain(dy), _plain(weight)
    turned, channels = geometry.adjoint, weight.shape[3] * geometry.groups
    neighbours = width if geometry.stride == (1, 1) else 1  # in a row, with equal windows
    chosen = way("input_gradient", turned, len(weight), channels, neighbours)
    if chosen == "winograd":
        adjoint = winograd.Weights(weight, True)
        return winograd.convolve(dy, adjoint, _first_pad(turned), (height, width), None)
    if chosen == "few_filters":
        return forward(dy, weight[:, ::-1, ::-1].transpose(3, 1, 2, 0), turned)
    dx = np.empty((len(dy), height, width, channels), dy.dtype)
    _MODULES[chosen].input_gradient(dy, weight, geometry, dx)
    return dx


def prepared_adjoint(weight: Array, geometry: Geometry) -> Callable[[Array], Array]:
    """Return ``input_gradient`` of a convolution that keeps size, its weights transformed once."""
    if not _by_winograd(weight, geometry):
        return lambda dy: input_gradient(dy, weight, geometry, *dy.shape[1:3])
    u = winograd.transform(winograd.Weights(_plain(weight), True))
    pad = _first_pad(geometry.adjoint)
    return lambda dy: winograd.convolve(_plain(dy), u, pad, (dy.shape[1], dy.shape[2]), None)


def weight_gradient(x: Array, dy: Array, geometry: Geometry) -> Array:
    """Return the gradient to the weights (out, kh, kw, in / groups)."""
    filters, channels = dy.shape[3], x.shape[3]
    chosen = way("weight_gradient", geometry, channels, filters)
    if chosen == "matmul":
        dw = matmul(dy.reshape(-1, filters).T, x.reshape(-1, channels))
        return dw.reshape(filters, 1, 1, channels)
    x, dy = _plain(x), _plain(dy)
    if chosen == "winograd":
        return winograd.weight_gradient(x, dy, geometry.kernel[0], _first_pad(geometry))
    return _MODULES[chosen].weight_gradient(x, dy, geometry)


def _plain(array: Array) -> Array:
    """Return the array, or a copy if kernels are not compiled for its kind.

    numba would compile everything again for read-only arrays, such as those from files.
    """
    return array if array.flags.carray else np.require(array, requirements=("C", "A", "W"))


def _by_winograd(weight: Array, geometry: Geometry) -> bool:
    return way("forward", geometry, weight.shape[3] * geometry.groups, len(weight)) == "winograd"


def _first_pad(geometry: Geometry) -> tuple[int, int]:
    """Return the numbers of zero rows above and of zero columns left."""
    return geometry.pad[0], geometry.pad[2]
