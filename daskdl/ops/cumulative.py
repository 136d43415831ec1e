"""Sums and products of all elements up to each along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.tensor import Array, op

__all__ = ["cumprod", "cumsum"]


@op
def cumsum(x: Array, *, axis: int, exclusive: bool = False, reverse: bool = False):
    """Add up along an axis.

    Parameters
    ----------
    x : array
    axis : int
    exclusive : bool
        Whether an element's own value is left out of its sum; the first is then 0.
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
    """Multiply along an axis; arguments as of :func:`cumsum`. The gradient is NaN where x is 0.

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
