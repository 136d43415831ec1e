"""Largest and smallest elements along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.tensor import Array, op

__all__ = ["amax", "amin"]


@op
def amax(x: Array, *, axis: int = -1, keepdims: bool = False):
    """Take the largest element along ``axis``; the gradient goes to the first of equals.

    Examples
    --------
    >>> ops.amax(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    np.float32(2.0)
    """
    return _along("amax", np.argmax, x, axis, keepdims)


@op
def amin(x: Array, *, axis: int = -1, keepdims: bool = False):
    """Take the smallest element along ``axis``; the gradient goes to the first of equals.

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
