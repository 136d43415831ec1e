"""Images on another grid: each result is a weighted mean of pixels, axis by axis."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.products.matmul import matmul
from daskdl.ops.arguments import check_floats
from daskdl.ops.shape import repeat
from daskdl.tensor import Array, Tensor, op

__all__ = ["adaptive_avg_pool2d", "along", "resize_bilinear", "upsample_nearest"]


@op
def along(x: Array, *, matrix: Array, axis: int):
    """Multiply an axis of ``x``, counted from the first, by a matrix (new length, old length).

    What is not finite, such as NaN for a missing pixel, makes NaN of results in which it has a
    weight, and of no others.

    Examples
    --------
    >>> ops.along(np.ones((2, 3)), matrix=np.ones((5, 3)), axis=1).shape
    (2, 5)
    """
    weights = np.asarray(matrix, x.dtype)

    def product(factor: Array, array: Array) -> Array:
        lead, rest = array.shape[:axis], array.shape[axis + 1 :]
        columns = array.reshape(*lead, array.shape[axis], math.prod(rest))
        return weighted(factor, columns).reshape(*lead, len(factor), *rest)

    return product(weights, x), lambda dy: (product(weights.T, dy),)


def weighted(factor: Array, columns: Array) -> Array:
    """Return ``factor @ columns`` where 0 times what is not finite counts nothing; (..., n, C)."""
    finite = np.isfinite(columns)
    if finite.all():
        return matmul(factor, columns)
    sums = matmul(factor, np.where(finite, columns, 0))
    spoilt = matmul((factor != 0).astype(columns.dtype), (~finite).astype(columns.dtype))
    sums[spoilt > 0] = np.nan
    return sums


def upsample_nearest(x: Array | Tensor, *, scale: tuple[int, ...]) -> Tensor:
    """Write each element ``scale`` times along the axes between the first and the last.

    x (N, D1, ..., C) -> (N, D1 * scale[0], ..., C)

    Examples
    --------
    >>> x = np.ones((2, 6, 4, 3), np.float32)
    >>> ops.upsample_nearest(x, scale=(2, 3)).shape
    (2, 12, 12, 3)
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
        Whether the corners' pixels lie on each other; otherwise the images' edges do.

    Returns
    -------
    array (N, rows, columns, C)

    Examples
    --------
    >>> x = np.ones((2, 6, 4, 3), np.float32)
    >>> ops.resize_bilinear(x, size=(12, 8)).shape
    (2, 12, 8, 3)
    """
    image: Any = x
    check_floats("resize_bilinear", image, axes=4)
    check_windows("resize_bilinear", image, size)
    return _separably(x, _linear, size, align_corners)


def adaptive_avg_pool2d(x: Array | Tensor, *, size: tuple[int, int]) -> Tensor:
    """Take means over ``size`` windows that share an image out, whatever its size.

    x (N, H, W, C) -> (N, size..., C); window i reaches from pixel i H / size to (i + 1) H / size,
    rounded down and up.

    Examples
    --------
    >>> x = np.ones((2, 6, 4, 3), np.float32)
    >>> ops.adaptive_avg_pool2d(x, size=(2, 2)).shape
    (2, 2, 2, 3)
    """
    image: Any = x
    check_floats("adaptive_avg_pool2d", image, axes=4)
    check_windows("adaptive_avg_pool2d", image, size)
    return _separably(x, _shares, size)


def check_windows(operation: str, x: Any, size: tuple[int, int]) -> None:
    """Raise a SettingsError unless there are windows, and an error for an image without pixels."""
    if min(size) < 1:
        raise SettingsError(f"{operation}: size: expected at least 1, found {size}")
    if min(x.shape[1:3]) < 1:
        raise ShapeError(f"{operation}: expected images with pixels, found {x.shape}")


def bins(length: int, count: int) -> list[tuple[int, int]]:
    """Return begin and end of each of ``count`` windows that share ``length`` pixels out."""
    return [(i * length // count, -(-(i + 1) * length // count)) for i in range(count)]


def _separably(x: Any, matrix: Any, size: tuple[int, int], *settings: Any) -> Tensor:
    rows, columns = (matrix(n, m, *settings) for n, m in zip(x.shape[1:3], size, strict=True))
    y: Tensor = along(along(x, matrix=rows, axis=1), matrix=columns, axis=2)
    return y


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
