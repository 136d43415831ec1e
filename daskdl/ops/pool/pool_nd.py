"""Pooling over windows with dilation, along any number of axes, in one pass for each window cell.

:mod:`daskdl.ops.pool.pooling` is faster for two axes without dilation.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.ops.conv.unfold import tap
from daskdl.tensor import Array, op

__all__ = ["max_pool_nd", "sum_pool_nd"]


class WindowsND(NamedTuple):
    """Windows along the axes between the first and the last of (N, ..., C).

    ``pad`` are the cells before and behind each axis in turn.
    """

    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil_mode: bool = False

    def sizes(self, lengths: tuple[int, ...]) -> tuple[int, ...]:
        """Return the number of windows along each axis."""
        counts = []
        for i, n in enumerate(lengths):
            before, behind = self.pad[2 * i : 2 * i + 2]
            room = n + before + behind - (self.kernel_size[i] - 1) * self.dilation[i] - 1
            step = self.stride[i]
            count = (-(-room // step) if self.ceil_mode else room // step) + 1
            if self.ceil_mode and (count - 1) * step >= n + before:
                count -= 1  # its window would begin after the axis
            counts.append(count)
        return tuple(counts)

    def taps(self, lengths: tuple[int, ...]) -> Iterator[tuple[tuple[slice, ...], ...]]:
        """Yield, for each cell of a window, slices of the windows and of x that meet there."""
        sizes = self.sizes(lengths)
        for cell in itertools.product(*map(range, self.kernel_size)):
            inside, at = [slice(None)], [slice(None)]
            for i, n in enumerate(lengths):
                offset = cell[i] * self.dilation[i] - self.pad[2 * i]
                parts = tap(n, sizes[i], offset, self.stride[i])
                inside.append(parts[0])
                at.append(parts[1])
            yield tuple(inside), tuple(at)


@op
def max_pool_nd(
    x: Array,
    *,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...],
    pad: tuple[int, ...],
    dilation: tuple[int, ...],
    ceil_mode: bool = False,
):
    """Take the largest number of each window.

    Parameters
    ----------
    x : array (N, ..., C) of any dtype
    kernel_size, stride, dilation : one number for each axis between
    pad : before and behind of each axis in turn
        Cells that maxima ignore.
    ceil_mode : bool
        Whether a last window may reach beyond the padding.

    Returns
    -------
    y : array (N, ..., C)
        The gradient goes to the first of equal numbers.
    places : int64 array of that shape
        Flat index of each in the axes of x between the first and the last.

    Examples
    --------
    >>> x = np.arange(4.0).reshape(1, 4, 1)
    >>> y, places = max_pool_nd(x, kernel_size=(2,), stride=(2,), pad=(0, 0), dilation=(1,))
    >>> y.data.ravel(), places.data.ravel()
    (array([1., 3.]), array([1, 3]))
    """
    windows = WindowsND(kernel_size, stride, pad, dilation, ceil_mode)
    lengths = _check("max_pool_nd", x, windows)
    sizes = (x.shape[0], *windows.sizes(lengths), x.shape[-1])
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    y = np.full(sizes, least, x.dtype)
    places = np.zeros(sizes, np.int64)
    grid = np.arange(int(np.prod(lengths))).reshape(1, *lengths, 1)
    taps = list(windows.taps(lengths))
    for k, (inside, at) in enumerate(taps):
        shifted, here = x[at], y[inside]
        better = (shifted > here) | (shifted != shifted) if k else np.ones(shifted.shape, bool)
        here[better] = shifted[better]
        np.copyto(places[inside], np.broadcast_to(grid[at], shifted.shape), where=better)

    def backward(dy: Array | None, _: Array | None):
        dx = np.zeros(x.shape, x.dtype)
        if dy is not None:
            for inside, at in taps:
                dx[at] += dy[inside] * (places[inside] == grid[at])
        return (dx,)

    return (y, places), backward


@op
def sum_pool_nd(
    x: Array,
    *,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...],
    pad: tuple[int, ...],
    dilation: tuple[int, ...],
    ceil_mode: bool = False,
):
    """Sum each window, with arguments of :func:`max_pool_nd`; cells of the padding are 0."""
    windows = WindowsND(kernel_size, stride, pad, dilation, ceil_mode)
    lengths = _check("sum_pool_nd", x, windows)
    y = np.zeros((x.shape[0], *windows.sizes(lengths), x.shape[-1]), x.dtype)
    taps = list(windows.taps(lengths))
    for inside, at in taps:
        y[inside] += x[at]

    def backward(dy: Array):
        dx = np.zeros(x.shape, x.dtype)
        for inside, at in taps:
            dx[at] += dy[inside]
        return (dx,)

    return y, backward


def _check(name: str, x: Array, windows: WindowsND) -> tuple[int, ...]:
    lengths: tuple[int, ...] = x.shape[1:-1]
    wanted: list[Any] = [windows.kernel_size, windows.stride, windows.dilation, windows.pad[::2]]
    if x.ndim < 3 or any(len(part) != len(lengths) for part in wanted):
        raise ShapeError(
            f"{name}: expected x (N, ..., C) and a window with its axes, found {x.shape} and "
            f"kernel_size {windows.kernel_size}, stride {windows.stride}, pad {windows.pad}"
        )
    if min(*windows.kernel_size, *windows.stride, *windows.dilation) < 1 or min(windows.pad) < 0:
        raise SettingsError(
            f"{name}: expected kernel_size, stride and dilation of at least 1 and pad of at least "
            f"0, found {windows}"
        )
    if min(windows.sizes(lengths)) < 1:
        raise ShapeError(f"{name}: expected x that holds a window {windows}, found {x.shape}")
    return lengths
