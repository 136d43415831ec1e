"""Convolution of images of few channels, such as a network's first layer: by rows of windows.

With three channels a tap is too short for a sum of its own, but a row of a window, contiguous in a
padded image, is not. In the gradient to the weights, the numbers of windows are the rows of a
product and filters its panels, both read in place. If filters do not fill panels, windows are the
panels: a few at a time are copied to memory that stays in L2.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution.direct import multiply_last
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.finish import Finish
from daskdl.kernels.products.microkernel import (
    COLUMNS,
    DEPTH,
    FEW_ROWS,
    ROWS,
    SEGMENT,
    WIDEST_COLUMNS,
    address,
    copy,
    keep,
    multiply,
    multiply_few,
)
from daskdl.kernels.products.packed import packed
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import scratch
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of, threads

Array = NDArray[np.floating]

#: Channels below which this serves, and the most numbers of a window.
FEW, LONG = 16, 800
#: Windows that are computed together.
WINDOWS = 16 * ROWS
#: Windows that are summed together: their gradients to a panel of filters fit a part of L1.
TOGETHER = 192
#: Parts of the sums for gradients to the weights, for the same bits with any number of threads.
PARTS = 8


def serves(geometry: Geometry, channels: int) -> bool:
    """Return whether this module convolves images of ``channels`` channels in all groups."""
    kh, kw = geometry.kernel
    suited = geometry.groups == 1 and geometry.dilation[1] == 1 and kw > 1
    return suited and channels < FEW and kh * kw * channels <= LONG


def forward(x: Array, weight: Array, geometry: Geometry, y: Array, add: bool) -> None:
    """Write, or add, the convolution of x (N, H, W, in) with weight (out, kh, kw, in) to y."""
    _run(x, panels_of(weight), geometry, y, add, None)


def panels_of(weight: Array) -> Array:
    """Return weights (out, kh, kw, in) in panels."""
    return packed(np.ascontiguousarray(weight).reshape(len(weight), -1).T)


def forward_packed(x: Array, panels: Array, geometry: Geometry, y: Array, finish: Finish) -> None:
    """Write the convolution with weights of :func:`panels_of` to y, and finish it.

    ``x`` may have any memory order.
    """
    _run(x, panels, geometry, y, False, finish)


def _run(x, panels, geometry, y, add, finish):
    image, plan = _padded(x, geometry, y.shape[1:3])
    results = y.reshape(-1, y.shape[3])
    if y.size:
        least = max(2 * ROWS, least_of(2 * panels.shape[1] * y.shape[3]))
        if finish is not None:
            finish = finish._replace(residual=finish.residual.reshape(results.shape))
        over_range(_forward, len(results), least, image, plan, panels, results, add, finish)


def weight_gradient(x: Array, dy: Array, geometry: Geometry) -> Array:
    """Return the gradient to the weights (out, kh, kw, in)."""
    channels, filters = x.shape[3], dy.shape[3]
    image, plan = _padded(x, geometry, dy.shape[1:3])
    gradients, depth = dy.reshape(-1, filters), math.prod(geometry.kernel) * channels
    bounds = np.arange(PARTS + 1) * len(gradients) // PARTS
    least = least_of(2 * gradients.size * depth / PARTS)
    if filters % WIDEST_COLUMNS == 0 and dy.size:
        sums = np.zeros((PARTS, depth, filters), x.dtype)
        over_range(_gradients_by_filters, PARTS, least, image, plan, gradients, sums, bounds)
        return np.ascontiguousarray(sums.sum(0).T).reshape(filters, *geometry.kernel, channels)
    sums = np.zeros((PARTS, filters, _width(depth)), x.dtype)
    if dy.size:
        windows = scratch("windows", (threads(), WINDOWS, _width(depth)), x.dtype)
        over_range(_gradients, PARTS, least, image, plan, gradients, sums, windows, bounds)
    # The numbers after a window's, and their sums, are arbitrary.
    return sums[:, :, :depth].sum(0).reshape(filters, *geometry.kernel, channels)


def _width(depth: int) -> int:
    """Return the numbers from window to window: an odd number of panels, the last one spare."""
    return (-(-depth // COLUMNS) + 1 | 1) * COLUMNS


def _padded(x: Array, geometry: Geometry, size: tuple[int, ...]) -> tuple[Array, NDArray[np.int64]]:
    """Return the padded images, flat with a spare panel at the end, and the windows' places.

    These are: rows and columns of windows; steps in numbers from image to image, from window to
    window (down and across) and between a window's rows; a window's rows, and numbers of a row.
    """
    n, height, width, channels = x.shape
    top, bottom, left, right = geometry.pad
    shape = n, height + top + bottom, width + left + right, channels
    image = scratch("padded", (math.prod(shape) + COLUMNS,), x.dtype)
    inside, line = image[: math.prod(shape)].reshape(shape), shape[2] * channels
    if x.flags.carray:
        if any(geometry.pad):
            image[:] = 0
        inside[:, top : top + height, left : left + width] = x
    else:
        planes = x.transpose(0, 3, 1, 2)
        if planes.flags.carray:  # then numba knows that rows are contiguous
            least = grain.least(grain.STREAM, line)
            over_range(_pad, n * shape[1], least, planes, inside, top, left)
        else:
            inside[:] = 0
            inside[:, top : top + height, left : left + width] = x
    down, across = geometry.stride
    plan = np.array(
        [
            *size, shape[1] * line, down * line, across * channels,
            geometry.dilation[0] * line, geometry.kernel[0], geometry.kernel[1] * channels,
        ]
    )  # fmt: skip
    return image, plan


@jit
def _pad(planes, image, top, left, which, start, stop):
    """Copy the rows ``start`` to ``stop`` of all images, channels last, with zeros around them."""
    channels, height, width = planes.shape[1:]
    for index in range(start, stop):
        n, t = divmod(index, image.shape[1])
        row = image[n, t]
        if t < top or t >= top + height:
            row[:] = 0
            continue
        row[:left] = 0
        row[left + width :] = 0
        flat, step = row.reshape(-1), np.uintp(channels)
        for c in range(channels):
            source, place = planes[n, c, t - top], np.uintp(left * channels + c)
            for u in range(width):
                flat[place] = source[u]
                place += step


@jit
def _gather(image, plan, first, count, windows):
    """Copy windows from ``first`` on, by ``COLUMNS`` numbers; the next copy overwrites the rest."""
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
def _forward(image, plan, panels, y, add, finish, which, start, stop):
    """Write, or add, the products of windows ``start`` to ``stop``; their rows are segments."""
    rows, columns, whole, down, across, line, kernel_rows, run = plan
    size, width = image.itemsize, y.shape[1]
    groups, row, line_of_b = WINDOWS // ROWS, SEGMENT * kernel_rows, COLUMNS * image.itemsize
    table, targets = np.empty(groups * row, np.int64), np.empty((2, WINDOWS), np.int64)
    spare = np.empty((WINDOWS, COLUMNS), image.dtype)
    places, at_table, at_places = targets.reshape(-1), address(table), address(targets)
    at_spares = at_places + WINDOWS * 8
    for entry in range(groups * kernel_rows):
        table[entry * SEGMENT + ROWS] = entry % kernel_rows * run * line_of_b
        table[entry * SEGMENT + ROWS + 1] = run
    together = max(1, DEPTH // run)  # rows of the kernel
    for first in range(start, stop, WINDOWS):
        count = min(WINDOWS, stop - first)
        n, rest = divmod(first, rows * columns)
        t, u = divmod(rest, columns)
        source = address(image) + (n * whole + t * down + u * across) * size
        for i in range(-(-count // ROWS) * ROWS):
            begin = i // ROWS * row + i % ROWS
            for r in range(kernel_rows):
                table[begin + r * SEGMENT] = source + r * line * size
            last = min(i, count - 1)  # after the last window, repeat it
            places[i] = address(y) + (first + last) * width * size
            places[WINDOWS + i] = address(spare) + last * line_of_b
            if i < count - 1:
                source += across * size
                u += 1
                if u == columns:
                    u, t = 0, t + 1
                    if t == rows:
                        t, n = 0, n + 1
                    source = address(image) + (n * whole + t * down) * size
        for r in range(0, kernel_rows, together):
            segments, more = min(together, kernel_rows - r), add or r > 0
            for j in range(panels.shape[0]):
                remaining = width - j * COLUMNS
                full = remaining >= COLUMNS
                panel = address(panels) + j * panels.shape[1] * line_of_b
                target, offset = (at_places, j * line_of_b) if full else (at_spares, 0)
                adds = more and (full or finish is not None)
                for group in range(-(-count // ROWS)):
                    entry = at_table + (group * row + r * SEGMENT) * 8
                    to = target + group * ROWS * 8
                    if finish is not None and r + segments == kernel_rows:
                        multiply_last(
                            image, entry, segments, size, panel, line_of_b,
                            at_places + group * ROWS * 8, j * line_of_b, adds, to, offset, y, 0,
                            finish, remaining,
                        )  # fmt: skip
                    elif count - group * ROWS <= FEW_ROWS:
                        multiply_few(
                            image, entry, segments, size, panel, line_of_b, to, offset, adds
                        )  # fmt: skip
                    else:
                        multiply(
                            image, entry, segments, size, panel, line_of_b, to, offset, adds
                        )  # fmt: skip
                if not full and finish is None:
                    for i in range(count):
                        for k in range(remaining):
                            # A plain 0 would make these sums float64, unlike a full panel's.
                            old = y[first + i, j * COLUMNS + k] if more else y.dtype.type(0)
                            y[first + i, j * COLUMNS + k] = old + spare[i, k]


@jit
def _gradients(image, plan, dy, sums, rooms, bounds, which, start, stop):
    for i in range(start, stop):
        _gradient(image, plan, dy, sums[i], rooms[which], bounds[i], bounds[i + 1])


@jit
def _gradient(image, plan, dy, dw, windows, start, stop):
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
    keep(targets)


@jit
def _gradients_by_filters(image, plan, dy, sums, bounds, which, start, stop):
    for i in range(start, stop):
        _gradient_by_filters(image, plan, dy, sums[i], bounds[i], bounds[i + 1])


@jit
def _gradient_by_filters(image, plan, dy, dw, start, stop):
    """Add to dw (numbers of a window, filters) the gradients of the windows ``start`` to ``stop``.

    Windows of one row of an image are one segment, since they are equally spaced.
    """
    rows, columns, whole, down, across, line, _, run = plan
    (depth, filters), size = dw.shape, dy.itemsize
    groups, most = -(-depth // ROWS), TOGETHER // columns + 2
    table = np.empty((groups, most * SEGMENT), np.int64)
    places, targets = np.empty(groups * ROWS, np.int64), np.empty(groups * ROWS, np.int64)
    entries, at_table, at_targets = table.reshape(-1), address(table), address(targets)
    for i in range(groups * ROWS):
        tap = min(i, depth - 1)
        places[i] = (tap // run * line + tap % run) * size
        targets[i] = address(dw) + tap * filters * size
    for first in range(start, stop, TOGETHER):
        last, segments, begin = min(first + TOGETHER, stop), 0, first
        while begin < last:
            n, rest = divmod(begin, rows * columns)
            t, u = divmod(rest, columns)
            end = min(last, begin + columns - u)
            corner = address(image) + (n * whole + t * down + u * across) * size
            for group in range(groups):
                entry = (group * most + segments) * SEGMENT
                for i in range(ROWS):
                    entries[entry + i] = corner + places[group * ROWS + i]
                entries[entry + ROWS] = begin * filters * size
                entries[entry + ROWS + 1] = end - begin
            begin, segments = end, segments + 1
        for j in range(0, filters, COLUMNS):
            for group in range(groups):
                entry, to = at_table + group * most * SEGMENT * 8, at_targets + group * ROWS * 8
                panel = address(dy) + j * size
                if depth - group * ROWS <= FEW_ROWS:
                    multiply_few(
                        dy, entry, segments, across * size, panel, filters * size, to, j * size,
                        True,
                    )  # fmt: skip
                else:
                    multiply(
                        dy, entry, segments, across * size, panel, filters * size, to, j * size,
                        True,
                    )  # fmt: skip
    keep(targets)
