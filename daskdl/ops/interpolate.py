"""Resizing of any axes: nearest, linear and cubic interpolation, one matrix for each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.ops.resample import along
from daskdl.tensor import Array, Tensor

__all__ = ["interpolate"]


def interpolate(
    x: Array | Tensor,
    *,
    points: Sequence[Array | None],
    mode: str = "linear",
    scales: Sequence[float] | None = None,
    nearest: str = "round_prefer_floor",
    cubic: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
) -> Any:
    """Interpolate between the elements of axes at given places.

    Parameters
    ----------
    x : array
    points : one vector for each axis of x, or None for an axis that stays
        Places, in elements of x counted from 0.
    mode : "nearest", "linear" or "cubic"
    scales : one number for each axis, optional
        New length by old; needed where ``antialias`` widens the filter.
    nearest : "round_prefer_floor", "round_prefer_ceil", "floor" or "ceil"
    cubic : float
        The kernel's slope (R. Keys, Cubic Convolution Interpolation, IEEE TASSP 29, 1981).
    exclude_outside : bool
        Whether elements beyond an edge have no weight; they count as those at the edge otherwise.
    antialias : bool
        Whether the filter is as wide as the elements that fall on one of the result.

    Examples
    --------
    >>> interpolate(np.array([[0.0, 1.0, 2.0]]), points=[None, np.array([0.5, 1.25])]).data
    array([[0.5 , 1.25]])
    """
    for axis, at in enumerate(points):
        if at is None:
            continue
        scale = min(1.0, scales[axis]) if antialias and scales is not None else 1.0
        matrix = weights(
            np.asarray(at, np.float64), x.shape[axis], mode, nearest, cubic, exclude_outside, scale
        )
        x = along(x, matrix=matrix, axis=axis)
    return x


def weights(
    at: Array,
    length: int,
    mode: str,
    nearest: str = "round_prefer_floor",
    cubic: float = -0.75,
    exclude_outside: bool = False,
    scale: float = 1.0,
) -> Array:
    """Return the matrix (points, length) that interpolates at places; rows add up to 1."""
    if mode == "nearest":
        ids = np.clip(_nearest(at, nearest), 0, length - 1).astype(np.int64)
        matrix = np.zeros((len(at), length))
        matrix[np.arange(len(at)), ids] = 1
        return matrix
    if mode not in ("linear", "cubic"):
        raise SettingsError(f"interpolate: expected nearest, linear or cubic, found {mode!r}")
    reach = (1 if mode == "linear" else 2) / scale
    matrix = np.zeros((len(at), length))
    rows = np.arange(len(at))
    first = np.floor(at - reach).astype(np.int64)
    total = np.zeros(len(at))
    for k in range(math.ceil(2 * reach) + 2):
        ids = first + k
        share = _kernel(mode, np.abs(at - ids) * scale, cubic)
        inside = (ids >= 0) & (ids < length)
        share = np.where(inside | (not exclude_outside), share, 0)
        total += share
        np.add.at(matrix, (rows, np.clip(ids, 0, length - 1)), share)
    return matrix / np.where(total == 0, 1, total)[:, None]


def _nearest(at: Array, how: str) -> Array:
    if how == "floor":
        return np.floor(at)
    if how == "ceil":
        return np.ceil(at)
    if how == "round_prefer_ceil":
        return np.floor(at + 0.5)
    return np.ceil(at - 0.5)


def _kernel(mode: str, distance: Array, a: float) -> Array:
    if mode == "linear":
        return np.maximum(0, 1 - distance)
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))
