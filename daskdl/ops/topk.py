"""The largest or smallest elements along an axis."""

from __future__ import annotations

import numpy as np

from daskdl.errors import ShapeError
from daskdl.tensor import Array, op

__all__ = ["topk"]


@op
def topk(x: Array, *, k: int, axis: int = -1, largest: bool = True):
    """Take the k largest (or smallest) elements along an axis, in order; of equals the first.

    Returns
    -------
    values : array, ``k`` long along the axis
        Their gradient goes to where they were taken.
    places : int64 array of that shape
        Where along the axis they lie.

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
    if largest:  # a stable sort of the reversed axis, turned round: of equals the first comes first
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
