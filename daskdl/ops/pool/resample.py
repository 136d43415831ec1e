"""Resampling to other sizes: interpolation along axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.pooling.regions import mixed
from daskdl.kernels.products.matmul import matmul
from daskdl.ops.arguments import check_floats
from daskdl.ops.shape.shape import repeat
from daskdl.tensor import Array, Tensor, op

__all__ = [
    "adaptive_avg_pool2d",
    "along",
    "interpolate",
    "resize_bilinear",
    "upsample_nearest",
]


@op
def along(x: Array, *, matrix: Array, axis: int):
    """Multiply an axis of ``x``, counted from the first, by a matrix (new length, old length).

    A number that is not finite, such as NaN for a missing pixel, turns only those results into NaN
    in which it has a weight.
    """
    weights = np.asarray(matrix, x.dtype)

    def product(factor: Array, array: Array) -> Array:
        lead, rest = array.shape[:axis], array.shape[axis + 1 :]
        columns = array.reshape(*lead, array.shape[axis], math.prod(rest))
        return weighted(factor, columns).reshape(*lead, len(factor), *rest)

    places = two_places(weights) if x.dtype == np.float32 else None
    if places is None:
        y = product(weights, x)
    else:  # in an order of sums that does not depend on other places of the axis
        shape = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
        two = np.take_along_axis(weights, places, 1)
        two[places[:, 0] == places[:, 1], 1] = 0
        y = mixed(np.ascontiguousarray(x).reshape(shape), places, two)
        y = y.reshape(*x.shape[:axis], len(weights), *x.shape[axis + 1 :])
    return y, lambda dy: (product(weights.T, dy),)


def two_places(matrix: Array) -> Array | None:
    """Return first and last place with a weight in each row, (rows, 2); None if a row has more."""
    some = matrix != 0
    first, last = some.argmax(1), matrix.shape[1] - 1 - some[:, ::-1].argmax(1)
    few = some.any(1) & (some.sum(1) <= 1 + (first != last))
    return np.stack([first, last], 1) if few.all() else None


def weighted(factor: Array, columns: Array) -> Array:
    """Return ``factor @ columns`` (..., n, C), where 0 times NaN or infinity counts as 0."""
    finite = np.isfinite(columns)
    if finite.all():
        return matmul(factor, columns)
    sums = matmul(factor, np.where(finite, columns, 0))
    spoilt = matmul((factor != 0).astype(columns.dtype), (~finite).astype(columns.dtype))
    sums[spoilt > 0] = np.nan
    return sums


def upsample_nearest(x: Array | Tensor, *, scale: tuple[int, ...]) -> Tensor:
    """Repeat each element ``scale`` times along the axes between the first and the last.

    x (N, D1, ..., C) -> (N, D1 * scale[0], ..., C)
    """
    if len(scale) != len(x.shape) - 2 or not all(n == int(n) and n >= 1 for n in scale):
        raise SettingsError(
            f"upsample_nearest: scale: expected {len(x.shape) - 2} whole numbers of at least 1, "
            f"found {scale}"
        )
    for axis, times in enumerate(scale, start=1):
        if times != 1:
            x = repeat(x, times=times, axis=axis)
    return x if isinstance(x, Tensor) else Tensor(x)


def resize_bilinear(
    x: Array | Tensor, *, size: tuple[int, int], align_corners: bool = False
) -> Tensor:
    """Interpolate images linearly at the points of another grid.

    Parameters
    ----------
    x : array (N, H, W, C)
    size : (rows, columns)
    align_corners : bool
        Whether the centres of corner pixels coincide; otherwise the images' edges do.

    Returns
    -------
    array (N, rows, columns, C)
    """
    image: Any = x
    check_floats("resize_bilinear", image, axes=4)
    check_windows("resize_bilinear", image, size)
    return _separably(x, _linear, size, align_corners)


def adaptive_avg_pool2d(x: Array | Tensor, *, size: tuple[int, int]) -> Tensor:
    """Take means over ``size`` windows that divide an image of any size.

    x (N, H, W, C) -> (N, size..., C); window i reaches from pixel i H / size to (i + 1) H / size,
    rounded down and up.
    """
    image: Any = x
    check_floats("adaptive_avg_pool2d", image, axes=4)
    check_windows("adaptive_avg_pool2d", image, size)
    return _separably(x, _shares, size)


def check_windows(operation: str, x: Any, size: tuple[int, int]) -> None:
    """Raise a SettingsError for a size below 1, and a ShapeError for an image without pixels."""
    if min(size) < 1:
        raise SettingsError(f"{operation}: size: expected at least 1, found {size}")
    if min(x.shape[1:3]) < 1:
        raise ShapeError(f"{operation}: expected images with pixels, found {x.shape}")


def bins(length: int, count: int) -> list[tuple[int, int]]:
    """Return start and stop of each of ``count`` windows that divide ``length`` pixels."""
    return [(i * length // count, -(-(i + 1) * length // count)) for i in range(count)]


def _separably(x: Any, matrix: Any, size: tuple[int, int], *settings: Any) -> Tensor:
    rows, columns = (matrix(n, m, *settings) for n, m in zip(x.shape[1:3], size, strict=True))
    return along(along(x, matrix=rows, axis=1), matrix=columns, axis=2)


@lru_cache(maxsize=64)
def _linear(length: int, count: int, align_corners: bool) -> Array:
    at = np.arange(count, dtype=np.float64)
    if align_corners:
        at *= (length - 1) / (count - 1) if count > 1 else 0
    else:
        at = np.maximum((at + 0.5) * length / count - 0.5, 0)
    return linear_weights(at, length)


@lru_cache(maxsize=64)
def _shares(length: int, count: int) -> Array:
    matrix = np.zeros((count, length))
    for i, (start, stop) in enumerate(bins(length, count)):
        matrix[i, start:stop] = 1 / (stop - start)
    return matrix


def linear_weights(at: Array, length: int) -> Array:
    """Return the matrix (points, length) that interpolates between pixels at places ``at``."""
    below = np.clip(np.floor(at).astype(np.int64), 0, length - 1)
    above = np.minimum(below + 1, length - 1)
    share = np.clip(at - below, 0, 1)
    matrix = np.zeros((len(at), length))
    points = np.arange(len(at))
    np.add.at(matrix, (points, below), 1 - share)
    np.add.at(matrix, (points, above), share)
    return matrix


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
    points : one vector for each axis of x, or None for an unchanged axis
        Places, in elements of x from 0.
    mode : "nearest", "linear" or "cubic"
    scales : one number for each axis, optional
        New length divided by old, which ``antialias`` needs to widen the filter.
    nearest : "round_prefer_floor", "round_prefer_ceil", "floor" or "ceil"
    cubic : float
        The kernel's slope (R. Keys, Cubic Convolution Interpolation, IEEE TASSP 29, 1981).
    exclude_outside : bool
        Whether elements beyond an edge have no weight; otherwise the edge's element counts.
    antialias : bool
        Whether the filter is as wide as the elements that one result covers.

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
    """Return the matrix (points, length) that interpolates at places; rows sum to 1."""
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
        share = kernel(mode, np.abs(at - ids) * scale, cubic)
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


def kernel(mode: str, distance: Array, a: float) -> Array:
    """Return the weights of elements at distances: linear, or cubic with the parameter ``a``."""
    if mode == "linear":
        return np.maximum(0, 1 - distance)
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))
