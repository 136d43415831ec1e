"""Windows along an axis: extract them, and add them up again."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Array, op

__all__ = ["fold", "unfold"]


@op
def unfold(
    x: Array,
    *,
    axis: int,
    size: int,
    stride: int = 1,
    pad: tuple[int, int] = (0, 0),
    dilation: int = 1,
):
    """Take windows along an axis: (..., L, ...) -> (..., count, size, ...).

    Parameters
    ----------
    x : array
    axis : int
        Axis, counted from the first.
    size, stride, dilation : int
    pad : (before, behind)
        Zeros around the axis.

    Examples
    --------
    >>> ops.unfold(np.arange(5.0), axis=0, size=3).data
    array([[0., 1., 2.],
           [1., 2., 3.],
           [2., 3., 4.]])
    """
    count = _windows("unfold", x.shape, axis, size, stride, pad, dilation)
    taps = [tap(x.shape[axis], count, i * dilation - pad[0], stride) for i in range(size)]
    lead: Any = (slice(None),) * axis
    y = np.zeros((*x.shape[:axis], count, size, *x.shape[axis + 1 :]), x.dtype)
    for i, (inside, at) in enumerate(taps):
        y[(*lead, inside, i)] = x[(*lead, at)]

    def backward(dy: Array):
        dx = np.zeros(x.shape, dy.dtype)
        for i, (inside, at) in enumerate(taps):
            dx[(*lead, at)] += dy[(*lead, inside, i)]
        return (dx,)

    return y, backward


@op
def fold(
    windows: Array,
    *,
    axis: int,
    length: int,
    stride: int = 1,
    pad: tuple[int, int] = (0, 0),
    dilation: int = 1,
):
    """Add windows up along an axis; this is the adjoint, and so the gradient, of :func:`unfold`.

    windows (..., count, size, ...) -> (..., length, ...); ``axis`` is the axis of ``count``.

    Examples
    --------
    >>> ops.fold(np.ones((3, 3)), axis=0, length=5).data
    array([1., 2., 3., 2., 1.])
    """
    count, size = windows.shape[axis : axis + 2]
    shape: tuple[int, ...] = (*windows.shape[:axis], length, *windows.shape[axis + 2 :])
    if _windows("fold", shape, axis, size, stride, pad, dilation) != count:
        raise ShapeError(f"fold: expected windows of an axis of {length}, found {windows.shape}")
    taps = [tap(length, count, i * dilation - pad[0], stride) for i in range(size)]
    lead: Any = (slice(None),) * axis
    y: Array = np.zeros(shape, windows.dtype)
    for i, (inside, at) in enumerate(taps):
        y[(*lead, at)] += windows[(*lead, inside, i)]

    def backward(dy: Array):
        d = np.zeros(windows.shape, dy.dtype)
        for i, (inside, at) in enumerate(taps):
            d[(*lead, inside, i)] = dy[(*lead, at)]
        return (d,)

    return y, backward


def _windows(
    name: str,
    shape: tuple[int, ...],
    axis: int,
    size: int,
    stride: int,
    pad: tuple[int, int],
    dilation: int,
) -> int:
    """Return the number of windows of an axis."""
    if min(size, stride, dilation) < 1 or min(pad) < 0:
        raise SettingsError(
            f"{name}: expected size, stride and dilation of at least 1 and pad of at least 0, "
            f"found {size}, {stride}, {dilation} and {pad}"
        )
    room = shape[axis] + sum(pad) - (size - 1) * dilation - 1
    if room < 0:
        raise ShapeError(
            f"{name}: expected at least {(size - 1) * dilation + 1} elements along axis {axis} "
            f"with padding {pad}, found shape {shape}"
            "; pad more, or take a smaller window"
        )
    return room // stride + 1


def tap(length: int, count: int, offset: int, stride: int) -> tuple[slice, slice]:
    """Return the windows that have a tap inside the axis, and the places of these taps."""
    first = max(0, -(offset // stride)) if offset < 0 else 0
    last = min(count, (length - 1 - offset) // stride + 1)
    if last <= first:
        return slice(0, 0), slice(0, 0)
    start = first * stride + offset
    return slice(first, last), slice(start, start + (last - first - 1) * stride + 1, stride)
