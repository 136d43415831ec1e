"""Products of elements along axes, and determinants."""

from __future__ import annotations

import numpy as np

from daskdl.errors import ShapeError
from daskdl.tensor import Array, op

__all__ = ["det", "prod"]


@op
def prod(x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False):
    """Multiply the elements along axes, by default all; the gradient is exact where one is 0.

    Examples
    --------
    >>> ops.prod(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    np.float32(-1.0)
    """
    axes = tuple(range(x.ndim)) if axis is None else axis
    axes = tuple(a % x.ndim for a in ((axes,) if isinstance(axes, int) else axes))
    y = np.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype)

    def backward(dy: Array):
        rest = tuple(a for a in range(x.ndim) if a not in axes)
        moved = x.transpose(*rest, *axes)
        rows = moved.reshape(*(x.shape[a] for a in rest), -1)
        ones = np.ones((*rows.shape[:-1], 1), x.dtype)
        before = np.cumprod(np.concatenate([ones, rows[..., :-1]], -1), -1, dtype=x.dtype)
        behind = np.concatenate([rows[..., 1:], ones], -1)[..., ::-1]
        others = before * np.cumprod(behind, -1, dtype=x.dtype)[..., ::-1]
        others *= dy.reshape(*rows.shape[:-1], 1)
        return (others.reshape(moved.shape).transpose(np.argsort((*rest, *axes))),)

    return y, backward


@op
def det(x: Array):
    """Return determinants, (..., M, M) -> (...); the gradient of a singular matrix is NaN.

    Examples
    --------
    >>> ops.det(np.array([[2.0, 1.0], [1.0, 3.0]])).data.round(6)
    np.float64(5.0)
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"det: expected x of shape (..., M, M), found {x.shape}")
    y = np.asarray(np.linalg.det(x), x.dtype)

    def backward(dy: Array):
        try:
            inverse = np.linalg.inv(x)
        except np.linalg.LinAlgError:
            inverse = np.full_like(x, np.nan)
        return ((dy * y)[..., None, None] * inverse.swapaxes(-1, -2),)

    return y, backward
