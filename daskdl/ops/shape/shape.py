"""Operations that move numbers without changing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Array, op

__all__ = [
    "concatenate",
    "depth_to_space",
    "flip",
    "pad",
    "repeat",
    "reshape",
    "scatter",
    "space_to_depth",
    "split",
    "stack",
    "take",
    "transpose",
]

_REDUCTIONS: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


@op
def reshape(x: Array, *, shape: tuple[int, ...]):
    """Return ``x`` in another shape with the same number of elements."""
    return x.reshape(shape), lambda dy: (dy.reshape(x.shape),)


@op
def take(x: Array, *, index: tuple[Any, ...]):
    """Index as numpy does, ``x[index]``; an element that is taken twice gets both gradients.

    Examples
    --------
    >>> ops.take(np.array([1.0, 2.0, 3.0]), index=(np.array([2, 0]),)).data
    array([3., 1.])
    """
    again = any(isinstance(part, (list, tuple, np.ndarray)) for part in index)

    def backward(dy: Array):
        dx = np.zeros_like(x)
        if again:
            np.add.at(dx, index, dy)
        else:
            dx[index] = dy
        return (dx,)

    return x[index], backward


@op
def concatenate(*arrays: Array, axis: int = -1):
    """Join arrays along an existing axis.

    Examples
    --------
    >>> ops.concatenate(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([-1. ,  0.5,  2. ], dtype=float32)
    """
    bounds = np.cumsum([a.shape[axis] for a in arrays])[:-1]
    return np.concatenate(arrays, axis), lambda dy: tuple(np.split(dy, bounds, axis))


@op
def transpose(x: Array, *, axes: tuple[int, ...]):
    """Permute the axes of ``x``, as numpy's ``transpose``."""
    back = tuple(int(i) for i in np.argsort([a % x.ndim for a in axes]))
    return x.transpose(axes), lambda dy: (dy.transpose(back),)


@op
def stack(*arrays: Array, axis: int = 0):
    """Join arrays of one shape along a new axis.

    Examples
    --------
    >>> ops.stack(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([[-1. ,  0.5,  2. ]], dtype=float32)
    """
    y = np.stack(arrays, axis)
    return y, lambda dy: tuple(np.moveaxis(dy, axis, 0))


@op
def split(x: Array, *, sizes: Sequence[int], axis: int = -1):
    """Cut ``x`` into pieces of these sizes along an axis; return a tuple of arrays.

    Examples
    --------
    >>> [part.data for part in ops.split(np.arange(3.0), sizes=[1, 2])]
    [array([0.]), array([1., 2.])]
    """
    if sum(sizes) != x.shape[axis]:
        raise ShapeError(
            f"split: expected sizes that add up to {x.shape[axis]}, axis {axis} of x of shape "
            f"{x.shape}, found {tuple(sizes)}"
            "; give sizes of all pieces"
        )
    pieces = tuple(np.split(x, np.cumsum(sizes)[:-1], axis))

    def backward(*gradients: Array | None):
        parts = [
            np.zeros_like(piece) if dy is None else dy
            for piece, dy in zip(pieces, gradients, strict=True)
        ]
        return (np.concatenate(parts, axis),)

    return pieces, backward


@op
def flip(x: Array, *, axis: int | tuple[int, ...]):
    """Reverse ``x`` along axes.

    Examples
    --------
    >>> ops.flip(np.array([1.0, 2.0, 3.0]), axis=0).data
    array([3., 2., 1.])
    """
    return np.flip(x, axis), lambda dy: (np.flip(dy, axis),)


@op
def repeat(x: Array, *, times: int, axis: int):
    """Repeat each element along an axis ``times`` times, next to each other.

    Examples
    --------
    >>> ops.repeat(np.array([1.0, 2.0]), times=2, axis=0).data
    array([1., 1., 2., 2.])
    """
    axis %= x.ndim
    cells = (*x.shape[: axis + 1], times, *x.shape[axis + 1 :])
    return np.repeat(x, times, axis), lambda dy: (dy.reshape(cells).sum(axis + 1),)


@op
def pad(x: Array, *, widths: Sequence[tuple[int, int]], value: float = 0.0, mode: str = "constant"):
    """Add elements around ``x``.

    Parameters
    ----------
    x : array
    widths : sequence of (before, behind)
        One pair for each axis of x. A negative number cuts elements off.
    value : float
        Value of the elements with ``mode="constant"``.
    mode : "constant", "reflect" or "edge"
        "reflect" leaves out the element at the border, "edge" repeats it.

    Examples
    --------
    >>> ops.pad(np.array([1.0, 2.0]), widths=[(1, 2)]).data
    array([0., 1., 2., 0., 0.])
    """
    if mode not in ("constant", "reflect", "edge"):
        raise SettingsError(f"pad: expected mode constant, reflect or edge, found {mode!r}")
    if len(widths) != x.ndim:
        raise ShapeError(f"pad: expected {x.ndim} pairs of widths for shape {x.shape}: {widths}")
    inner = tuple(
        slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(x.shape, widths, strict=True)
    )
    around = [(max(0, a), max(0, b)) for a, b in widths]
    cut = x[inner]
    place = tuple(slice(a, a + n) for n, (a, _) in zip(cut.shape, around, strict=True))
    if mode == "reflect" and any(
        max(pair) >= n for n, pair in zip(cut.shape, around, strict=True) if max(pair)
    ):
        raise ShapeError(
            f"pad: expected to reflect less than x has, {cut.shape}, found {widths}"
            "; pad less, or with mode 'edge'"
        )
    values: dict[str, Any] = {"constant_values": value} if mode == "constant" else {}
    y = np.pad(cut, around, mode=mode, **values)  # type: ignore[call-overload]

    def add_back(dy: Array) -> Array:
        """Add the gradients of borders to those of their sources; corners repeat borders."""
        dy = dy.copy()
        for axis, (before, behind) in reversed(list(enumerate(around))):
            n, rows = cut.shape[axis], np.moveaxis(dy, axis, 0)
            sources = np.pad(np.arange(before, before + n), (before, behind), mode=mode)  # type: ignore[call-overload]
            for k in reversed((*range(before), *range(before + n, len(sources)))):
                rows[sources[k]] += rows[k]
        return dy

    def backward(dy: Array):
        dx = np.zeros_like(x)
        dx[inner] = (dy if mode == "constant" else add_back(dy))[place]
        return (dx,)

    return y, backward


def _fold(x: Array, block: int) -> Array:
    *lead, height, width, channels = x.shape
    x = x.reshape(*lead, height // block, block, width // block, block, channels)
    x = x.swapaxes(-4, -3)
    return x.reshape(*lead, height // block, width // block, block * block * channels)


def _unfold(x: Array, block: int) -> Array:
    *lead, height, width, channels = x.shape
    x = x.reshape(*lead, height, width, block, block, channels // block**2).swapaxes(-4, -3)
    return x.reshape(*lead, height * block, width * block, channels // block**2)


@op
def space_to_depth(x: Array, *, block: int):
    """Fold ``block`` x ``block`` pixels into channels: (..., H, W, C) -> (..., H/b, W/b, b*b*C)."""
    return _fold(x, block), lambda dy: (_unfold(dy, block),)


@op
def depth_to_space(x: Array, *, block: int):
    """Undo :func:`space_to_depth`: (..., H, W, b*b*C) -> (..., H*b, W*b, C)."""
    return _unfold(x, block), lambda dy: (_fold(dy, block),)


@op
def scatter(x: Array, updates: Array, *, index: tuple[Any, ...], reduction: str = "none"):
    """Return x with ``x[index]`` replaced by updates, or reduced with them.

    Parameters
    ----------
    x : array
    updates : array
        Array in the shape of ``x[index]``.
    index : tuple
        Index as in numpy. Without a reduction, the last update of a place counts.
    reduction : "none", "add", "mul", "max" or "min"
        The gradient of ``max`` and ``min`` is shared by equal elements, of ``mul`` it is NaN at 0.

    Examples
    --------
    >>> ops.scatter(np.zeros(4), np.array([5.0, 7.0]), index=(np.array([1, 3]),)).data
    array([0., 5., 0., 7.])
    """
    if reduction not in ("none", *_REDUCTIONS):
        raise SettingsError(
            f"scatter: expected reduction none, {', '.join(_REDUCTIONS)}, found {reduction!r}"
        )
    y = np.array(x)
    if reduction == "none":
        y[index] = updates
    else:
        _REDUCTIONS[reduction].at(y, index, updates)

    def backward(dy: Array):
        if reduction == "add":
            return dy, dy[index]
        if reduction == "none":
            dx = dy.copy()
            dx[index] = 0
            return dx, dy[index]
        if reduction == "mul":
            with np.errstate(divide="ignore", invalid="ignore"):
                return dy * y / x, dy[index] * y[index] / updates
        holders = (x == y).astype(dy.dtype)
        winners = (updates == y[index]).astype(dy.dtype)
        count = holders.copy()
        np.add.at(count, index, winners)
        share = dy / count
        return share * holders, share[index] * winners

    return y, backward
