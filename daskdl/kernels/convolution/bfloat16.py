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
from daskdl.kernels.products.microkernel import COLUMNS
from daskdl.kernels.products.packing import packed_weights
from daskdl.kernels.runtime.memory import empty

Array = NDArray[np.float32]
Pairs = NDArray[np.uint32]

#: Least channels and filters for pairs.
LEAST = 16


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
    if geometry.pointwise:
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
    if geometry.pointwise:
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
    dw = direct.weight_gradient(x.view(np.uint16), dy.view(np.uint16), geometry)
    # A last channel, or filter, without a partner is paired with zeros.
    return np.ascontiguousarray(dw[:filters, ..., :channels])
