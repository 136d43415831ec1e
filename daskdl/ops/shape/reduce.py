"""Reductions along axes: sums, extremes, cumulative sums, largest values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from daskdl.errors import ShapeError
from daskdl.kernels.vectors.reduce import sum_over
from daskdl.ops.pointwise.activations import check_float
from daskdl.tensor import Array, op

__all__ = [
    "amax",
    "amin",
    "cumprod",
    "cumsum",
    "mean",
    "sum",
    "topk",
]


Axes = int | tuple[int, ...] | None


@op
def sum(x: Array, *, axis: Axes = None, keepdims: bool = False):
    """Sum over the axes ``axis``, by default all.

    Examples
    --------
    >>> ops.sum(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    np.float32(1.5)
    """
    x = np.asarray(x)
    axes = _axes("sum", x, axis)
    return _result(x, sum_over(x, axes), axes, keepdims, 1.0)


@op
def mean(x: Array, *, axis: Axes = None, keepdims: bool = False):
    """Mean over the axes ``axis``, by default all; NaN over no elements.

    Examples
    --------
    >>> ops.mean(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    np.float32(0.5)
    """
    x = np.asarray(x)
    axes = _axes("mean", x, axis)
    n = math.prod(x.shape[a] for a in axes)
    return _result(x, sum_over(x, axes), axes, keepdims, 1 / n if n else math.nan)


def _axes(name: str, x: Array, axis: Axes) -> tuple[int, ...]:
    check_float(name, x)
    if axis is None:
        return tuple(range(x.ndim))
    try:
        return normalize_axis_tuple(axis, x.ndim)
    except (ValueError, TypeError):
        raise ShapeError(
            f"{name}: expected axes of x, whose shape is {x.shape}, each once, found {axis}"
            "; count them from 0, or back from -1"
        ) from None


def _result(x: Array, sums: Array, axes: tuple[int, ...], keepdims: bool, scale: float):
    ones = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
    y = np.asarray(sums * scale, x.dtype)

    def backward(dy: Array):
        dx = np.empty_like(x, order="C")
        dx[...] = dy.reshape(ones) * x.dtype.type(scale)
        return (dx,)

    return y.reshape(ones) if keepdims else y, backward


@op
def amax(x: Array, *, axis: int = -1, keepdims: bool = False):
    """Take the largest element along ``axis``; the gradient goes to the first of equal ones.

    Examples
    --------
    >>> ops.amax(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    np.float32(2.0)
    """
    return _along("amax", np.argmax, x, axis, keepdims)


@op
def amin(x: Array, *, axis: int = -1, keepdims: bool = False):
    """Take the smallest element along ``axis``; the gradient goes to the first of equal ones.

    Examples
    --------
    >>> ops.amin(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    np.float32(-1.0)
    """
    return _along("amin", np.argmin, x, axis, keepdims)


def _along(name: str, find: Any, x: Array, axis: int, keepdims: bool):
    if not -x.ndim <= axis < x.ndim or not x.shape[axis]:
        raise ShapeError(
            f"{name}: expected an axis of x with elements, found axis {axis} of shape {x.shape}"
            "; leave out empty arrays first"
        )
    places = np.expand_dims(find(x, axis=axis), axis)
    y = np.take_along_axis(x, places, axis)

    def backward(dy: Array):
        dx = np.zeros(x.shape, dy.dtype)
        np.put_along_axis(dx, places, dy.reshape(places.shape), axis)
        return (dx,)

    return y if keepdims else y.squeeze(axis), backward


@op
def cumsum(x: Array, *, axis: int, exclusive: bool = False, reverse: bool = False):
    """Sum cumulatively along an axis.

    Parameters
    ----------
    x : array
    axis : int
    exclusive : bool
        Whether an element's sum excludes the element itself; then the first sum is 0.
    reverse : bool
        Whether to start from the last element.

    Examples
    --------
    >>> ops.cumsum(np.array([1.0, 2.0, 3.0]), axis=0).data
    array([1., 3., 6.])
    """
    _check("cumsum", x, axis)
    y = _running(np.cumsum, 0, x, axis, exclusive, reverse)
    return y, lambda dy: (_running(np.cumsum, 0, dy, axis, exclusive, not reverse),)


@op
def cumprod(x: Array, *, axis: int, exclusive: bool = False, reverse: bool = False):
    """Multiply cumulatively, with arguments of :func:`cumsum`; the gradient is NaN where x is 0.

    Examples
    --------
    >>> ops.cumprod(np.array([1.0, 2.0, 3.0]), axis=0).data
    array([1., 2., 6.])
    """
    _check("cumprod", x, axis)
    y = _running(np.cumprod, 1, x, axis, exclusive, reverse)

    def backward(dy: Array):
        with np.errstate(divide="ignore", invalid="ignore"):
            return (_running(np.cumsum, 0, dy * y, axis, exclusive, not reverse) / x,)

    return y, backward


def _check(name: str, x: Array, axis: int) -> None:
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(f"{name}: expected an axis of x, whose shape is {x.shape}, found {axis}")


def _running(
    function: Any, first: int, x: Array, axis: int, exclusive: bool, reverse: bool
) -> Array:
    x = np.flip(x, axis) if reverse else x
    y = function(x, axis=axis, dtype=x.dtype)
    if exclusive:
        y = np.roll(y, 1, axis)
        if y.size:
            np.moveaxis(y, axis, 0)[0] = first
    return np.flip(y, axis) if reverse else y


@op
def topk(x: Array, *, k: int, axis: int = -1, largest: bool = True):
    """Take the k largest (or smallest) elements along an axis, in order; of equal ones the first.

    Returns
    -------
    values : array, ``k`` long along the axis
        Their gradient goes to the elements that were taken.
    places : int64 array of that shape
        Their indices along the axis.

    Examples
    --------
    >>> values, places = ops.topk(np.array([1.0, 4.0, 3.0]), k=2)
    >>> values.data, places.data
    (array([4., 3.]), array([1, 2]))
    """
    if not -x.ndim <= axis < x.ndim or not 0 <= k <= x.shape[axis]:
        raise ShapeError(
            f"topk: expected k of 0 to the length of an axis of x, found k={k}, axis={axis}, "
            f"shape {x.shape}"
        )
    if largest:  # a stable sort of the reversed axis, reversed: equal elements keep their order
        order = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
        order = x.shape[axis] - 1 - order
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    places = np.take(order, np.arange(k), axis=axis)

    def backward(dy: Array | None, _: Array | None):
        dx = np.zeros_like(x)
        if dy is not None:
            np.put_along_axis(dx, places, dy, axis)
        return (dx,)

    return (np.take_along_axis(x, places, axis), places.astype(np.int64)), backward
