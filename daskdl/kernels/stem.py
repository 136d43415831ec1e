"""Convolution of images of few channels, such as a network's first layer: windows are gathered.

With three channels a tap is too short a sum to begin one for it. Here a few windows at a time are
copied out of a padded image, a row of the kernel at a time, to where they stay in L2, and each of
them is one long sum.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.geometry import Geometry
from daskdl.kernels.jit import jit
from daskdl.kernels.microkernel import (
    COLUMNS,
    FEW_ROWS,
    ROWS,
    SEGMENT,
    address,
    copy,
    multiply,
    multiply_few,
)
from daskdl.kernels.packed import packed, product, room_for
from daskdl.kernels.scratch import scratch
from daskdl.kernels.team import over_range
from daskdl.kernels.threads import least_of, threads

Array = NDArray[np.floating]

#: Channels below which windows are gathered, if they have at most so many numbers.
FEW, LONG = 16, 800
#: Windows that are gathered together.
WINDOWS = 16 * ROWS
#: Parts in which gradients to the weights are summed, whatever the threads: for the same bits.
PARTS = 8


def serves(geometry: Geometry, channels: int) -> bool:
    """Whether a convolution of so many channels in all groups is done here."""
    kh, kw = geometry.kernel
    plain = geometry.groups == 1 and geometry.dilation[1] == 1 and kw > 1
    return plain and channels < FEW and kh * kw * channels <= LONG


def forward(x: Array, weight: Array, geometry: Geometry, y: Array, add: bool) -> None:
    """Write, or add, the convolution of x (N, H, W, in) with weight (out, kh, kw, in) to y."""
    image, plan = _padded(x, geometry, y.shape[1:3])
    panels = packed(np.ascontiguousarray(weight).reshape(len(weight), -1).T)
    results = y.reshape(-1, len(weight))

    if y.size:
        windows = scratch("windows", (threads(), WINDOWS, _width(panels.shape[1])), x.dtype)
        least = max(2 * ROWS, least_of(2 * weight.size))
        over_range(_forward, len(results), least, image, plan, panels, results, add, windows)


def weight_gradient(x: Array, dy: Array, geometry: Geometry) -> Array:
    """Return the gradient to the weights (out, kh, kw, in)."""
    channels, filters = x.shape[3], dy.shape[3]
    image, plan = _padded(x, geometry, dy.shape[1:3])
    gradients, depth = dy.reshape(-1, filters), math.prod(geometry.kernel) * channels
    bounds = np.arange(PARTS + 1) * len(gradients) // PARTS
    sums = np.zeros((PARTS, filters, _width(depth)), x.dtype)

    if dy.size:
        windows = scratch("windows", (threads(), WINDOWS, _width(depth)), x.dtype)
        least = least_of(2 * len(gradients) * filters * depth / PARTS)
        over_range(_gradients, PARTS, least, image, plan, gradients, sums, windows, bounds)
    # Behind a window's numbers anything may stand, and its sums.
    dw: Array = sums[:, :, :depth].sum(0).reshape(filters, *geometry.kernel, channels)
    return dw


def _width(depth: int) -> int:
    """Return the numbers from a window to the next: an odd number of panels, the last one spare."""
    return (-(-depth // COLUMNS) + 1 | 1) * COLUMNS


def _padded(x: Array, geometry: Geometry, size: tuple[int, ...]) -> tuple[Array, NDArray[np.int64]]:
    """Return the padded images, flat with a panel behind, and where windows lie in them.

    Returns
    -------
    image : array
    plan : int64 array
        Rows and columns of windows; numbers from image to image, from window to window (down and
        across) and from one of a window's rows to the next; rows of a window and their numbers.
    """
    n, height, width, channels = x.shape
    top, bottom, left, right = geometry.pad
    shape = n, height + top + bottom, width + left + right, channels
    image = scratch("padded", (math.prod(shape) + COLUMNS,), x.dtype)
    inside = image[: math.prod(shape)].reshape(shape)
    if any(geometry.pad):
        image[:] = 0
    inside[:, top : top + height, left : left + width] = x
    line, (down, across) = shape[2] * channels, geometry.stride
    plan = np.array(
        [
            *size, shape[1] * line, down * line, across * channels,
            geometry.dilation[0] * line, geometry.kernel[0], geometry.kernel[1] * channels,
        ]
    )  # fmt: skip
    return image, plan


@jit
def _gather(image, plan, first, count, windows):  # type: ignore[no-untyped-def]
    """Copy the windows from ``first`` on, by ``COLUMNS`` numbers: the rest is overwritten next."""
    rows, columns, whole, down, across, line, kernel_rows, run = plan
    size = image.itemsize
    n, rest = divmod(first, rows * columns)
    t, u = divmod(rest, columns)
    to = address(windows)
    for _ in range(count):
        source = address(image) + (n * whole + t * down + u * across) * size
        for r in range(kernel_rows):
            for c in range(0, run, COLUMNS):
                copy(image, source + (r * line + c) * size, to + (r * run + c) * size)
        to += windows.shape[1] * size
        u += 1
        if u == columns:
            u, t = 0, t + 1
            if t == rows:
                t, n = 0, n + 1


@jit
def _forward(image, plan, panels, y, add, rooms, which, start, stop):  # type: ignore[no-untyped-def]
    room, windows = room_for(WINDOWS, image), rooms[which]
    for first in range(start, stop, WINDOWS):
        count = min(WINDOWS, stop - first)
        _gather(image, plan, first, count, windows)
        some = windows[:count, : panels.shape[1]]
        product(some, panels, y[first : first + count], add, room, image[:0])


@jit
def _gradients(image, plan, dy, sums, rooms, bounds, which, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        _gradient(image, plan, dy, sums[i], rooms[which], bounds[i], bounds[i + 1])


@jit
def _gradient(image, plan, dy, dw, windows, start, stop):  # type: ignore[no-untyped-def]
    """Add to dw (filters, width) the gradients of the windows ``start`` to ``stop``."""
    filters, size = dy.shape[1], dy.itemsize
    line = windows.shape[1] * size
    groups = -(-filters // ROWS)
    table, targets = np.empty((groups, SEGMENT), np.int64), np.empty((groups, ROWS), np.int64)
    entries, places = table.reshape(-1), targets.reshape(-1)
    at_table, at_places = address(table), address(targets)
    for r in range(groups * ROWS):
        places[r] = address(dw) + min(r, filters - 1) * line
    for first in range(start, stop, WINDOWS):
        count = min(WINDOWS, stop - first)
        _gather(image, plan, first, count, windows)
        for r in range(groups * ROWS):
            entry = r // ROWS * SEGMENT + r % ROWS
            entries[entry] = address(dy) + (first * filters + min(r, filters - 1)) * size
        for group in range(groups):
            entries[group * SEGMENT + ROWS] = 0
            entries[group * SEGMENT + ROWS + 1] = count
        for j in range(-(-plan[6] * plan[7] // COLUMNS)):
            panel, offset = address(windows) + j * COLUMNS * size, j * COLUMNS * size
            for group in range(groups):
                entry, to = at_table + group * SEGMENT * 8, at_places + group * ROWS * 8
                if filters - group * ROWS <= FEW_ROWS:
                    multiply_few(
                        dy, entry, 1, filters * size, panel, line, to, offset, True
                    )  # fmt: skip
                else:
                    multiply(dy, entry, 1, filters * size, panel, line, to, offset, True)
