"""Convolution in the order of AMX's tiles: images are rounded once, weights in each call.

It serves any kernel size and stride, without groups. 3x3 is no exception here: on AMX, direct sums
in bfloat16 take less time than Winograd's in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.finish import finish_of
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.precision import LEAST
from daskdl.kernels.tiles import gradient
from daskdl.kernels.tiles.instructions import BLOCK
from daskdl.kernels.tiles.positions import Positions, positions_of
from daskdl.kernels.tiles.product import Target, work_of
from daskdl.kernels.tiles.weights import Panels, panels_of

Array = NDArray[np.float32]
#: Pairs of bfloat16 numbers of a pixel, from :func:`daskdl.kernels.products.bfloat16.along`.
Pairs = NDArray[np.uint32]


def serves(channels: int, weight: Array, geometry: Geometry) -> bool:
    """Return whether tiles compute a convolution in the precision "bf16-tiles"."""
    return (
        weight.dtype == np.float32 and geometry.groups == 1 and min(channels, len(weight)) >= LEAST
    )


def windows(shape: tuple[int, ...], geometry: Geometry) -> Positions:
    """Return the positions of a convolution's windows on images of this shape."""
    size = geometry.size(shape[1], shape[2])
    return positions_of(shape, geometry.offsets(), geometry.stride, size)


def packed(weight: Array, name: str = "") -> Panels:
    """Return weights (out, kh, kw, in) as panels; see :func:`panels_of`."""
    flat = weight.reshape(len(weight), -1, weight.shape[3])
    return panels_of(flat, np.arange(flat.shape[1]), name=name)


def forward(x: Pairs, weight: Array, geometry: Geometry, size: tuple[int, int]) -> Array:
    """Convolve pairs of channels (N, H, W, in / 2) with ``weight`` (out, kh, kw, in)."""
    y = empty((len(x), *geometry.size(*size), len(weight)), np.float32)
    _write(x, packed(weight, "tile weights"), windows(x.shape, geometry), y)
    return y


def input_gradient(dy: Pairs, weight: Array, geometry: Geometry, size: tuple[int, int]) -> Array:
    """Return the gradient to x (N, *size, in) from pairs of filters (N, rows, columns, out / 2)."""
    filters, channels = len(weight), weight.shape[3]
    flat = weight.reshape(filters, -1, channels)
    dx = np.empty((len(dy), *size, channels), np.float32)
    for taps, offsets, grid in geometry.phases(*size):
        if not taps.size:
            dx[:, grid[0] :: grid[2], grid[1] :: grid[3]] = 0
            continue
        panels = panels_of(flat, taps, True, "tile weights")
        seen = positions_of(dy.shape, offsets, (1, 1), (grid[4], grid[5]))
        _write(dy, panels, seen, dx, Target((grid[0], grid[1]), (grid[2], grid[3])))
    return dx


def weight_gradient(x: Pairs, dy: Pairs, geometry: Geometry, weight: Array) -> Array:
    """Return the gradient to weights like ``weight`` from pairs of channels and of filters."""
    if not x.size or not dy.size:
        return np.zeros(weight.shape, np.float32)
    seen = windows(x.shape, geometry)
    dw = gradient.weight_gradient(x.view(np.uint16), dy.view(np.uint16), seen)
    # A last channel, or filter, without a partner is paired with zeros.
    used = dw[: len(weight), :, : weight.shape[3]]
    return np.ascontiguousarray(used).reshape(weight.shape)


def _write(
    pairs: Any, panels: Panels, positions: Positions, y: Array, target: Target | None = None
) -> None:
    if y.size:
        bias = np.zeros(len(panels) * BLOCK, np.float32)
        finish = finish_of(y, bias)
        work_of(pairs.view(np.uint16), panels, positions, y, finish, target)()
