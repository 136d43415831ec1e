"""Sums and means over any axes, added up in float64."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from daskdl.errors import ShapeError
from daskdl.kernels.vectors.reduce import sum_over
from daskdl.ops.activations import check_float
from daskdl.tensor import Array, op

__all__ = ["mean", "sum"]

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
    """Mean over the axes ``axis``, by default all; NaN over none.

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
