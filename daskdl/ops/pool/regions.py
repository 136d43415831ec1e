"""Pooling of regions of images to one size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.pooling import regions as kernel
from daskdl.kernels.products.matmul import matmul
from daskdl.ops.arguments import check_floats
from daskdl.ops.pool.resample import bins, check_windows, linear_weights, weighted
from daskdl.tensor import Array, op

__all__ = ["adaptive_max_pool2d", "roi_align", "roi_pool"]

#: Largest distance of a corner in pixels; farther ones count as this, so that sums stay exact.
_FAR = 1 << 40


@op
def adaptive_max_pool2d(x: Array, *, size: tuple[int, int]):
    """Take maxima over ``size`` windows that divide an image, (N, H, W, C) -> (N, size..., C)."""
    check_floats("adaptive_max_pool2d", x, axes=4)
    check_windows("adaptive_max_pool2d", x, size)
    n = len(x)
    rows, columns = (
        np.tile(np.array(bins(length, count), np.int64), (n, 1, 1))
        for length, count in zip(x.shape[1:3], size, strict=True)
    )
    y, places = kernel.maxima(x, np.arange(n), rows, columns)
    return y, lambda dy: (kernel.gradient(dy, places, x.shape),)


@op
def roi_pool(x: Array, regions: Array, *, size: tuple[int, int], scale: float = 1.0):
    """Take the maxima of the boxes of regions; boxes are rounded to whole pixels.

    Parameters
    ----------
    x : array (N, H, W, C), float32 or float64
    regions : array (R, 5)
        Number of the image, x and y of the first corner, x and y of the last; no gradient.
    size : (rows, columns)
        Number of boxes of a region.
    scale : float
        Factor from the regions' units to pixels of x.

    Returns
    -------
    array (R, rows, columns, C)
        0 where a box is outside the image.

    References
    ----------
    R. Girshick, Fast R-CNN, arXiv 1504.08083.

    Examples
    --------
    >>> x, regions = np.ones((1, 8, 8, 2)), np.array([[0.0, 1.0, 1.0, 6.0, 6.0]])
    >>> ops.roi_pool(x, regions, size=(2, 2)).shape
    (1, 2, 2, 2)
    """
    images = _check("roi_pool", x, regions, size, scale)
    far = np.floor(np.abs(regions[:, 1:] * scale) + 0.5) * np.sign(regions[:, 1:])
    corners = np.clip(far, -_FAR, _FAR).astype(np.int64)
    bounds = []
    for k, count in ((1, size[0]), (0, size[1])):
        start, length = corners[:, k, None], x.shape[2 - k]
        pixels = np.maximum(corners[:, k + 2, None] - start + 1, 1)
        # In integers: a rounded width of a box could reach a pixel beyond the region.
        first = start + np.arange(count) * pixels // count
        last = start - -np.arange(1, count + 1) * pixels // count
        bounds.append(np.clip(np.stack([first, last], -1), 0, length))
    y, places = kernel.maxima(x, images, *bounds)
    return y, lambda dy: (lambda: kernel.gradient(dy, places, x.shape), None)


@op
def roi_align(
    x: Array,
    regions: Array,
    *,
    size: tuple[int, int],
    scale: float = 1.0,
    samples: int = 0,
    aligned: bool = False,
):
    """Take means over points in the boxes of regions, interpolated linearly.

    Interpolation and mean together are products with one matrix for rows and one for columns.

    Parameters
    ----------
    x, regions, size, scale
        As in :func:`roi_pool`.
    samples : int
        Points of a box along each axis; 0 for as many as it has pixels.
    aligned : bool
        Whether pixel centres are at halves, as in Detectron2; then regions are not widened to one
        pixel.

    Returns
    -------
    array (R, rows, columns, C)

    References
    ----------
    K. He et al., Mask R-CNN, arXiv 1703.06870.

    Examples
    --------
    >>> x, regions = np.ones((1, 8, 8, 2)), np.array([[0.0, 1.0, 1.0, 6.0, 6.0]])
    >>> ops.roi_align(x, regions, size=(2, 2)).shape
    (1, 2, 2, 2)
    """
    images = _check("roi_align", x, regions, size, scale)
    corners = regions[:, 1:].astype(np.float64) * scale - (0.5 if aligned else 0.0)
    matrices = [
        [
            region_weights(corner[k], corner[k + 2], count, length, samples, aligned)
            .mean(1)
            .astype(x.dtype)
            for k, count, length in ((1, size[0], x.shape[1]), (0, size[1], x.shape[2]))
        ]
        for corner in corners
    ]
    channels = x.shape[3]
    y = np.empty((len(regions), *size, channels), x.dtype)
    for r, (down, across) in enumerate(matrices):
        rows = weighted(down, x[images[r]].reshape(x.shape[1], -1))
        y[r] = weighted(across, rows.reshape(size[0], x.shape[2], channels))

    def to_images(dy: Array) -> Array:
        dx = np.zeros(x.shape, x.dtype)
        for r, (down, across) in enumerate(matrices):
            rows = matmul(across.T, dy[r]).reshape(size[0], -1)
            dx[images[r]] += matmul(down.T, rows).reshape(x.shape[1:])
        return dx

    return y, lambda dy: (lambda: to_images(dy), None)


def region_weights(
    start: float, stop: float, count: int, length: int, samples: int, aligned: bool
) -> Array:
    """Return the weights of pixels, (count, points, length), at points from ``start`` to ``stop``.

    Points more than a pixel outside have none.
    """
    reach = stop - start if aligned else max(stop - start, 1.0)
    each = samples if samples > 0 else max(int(np.ceil(reach / count)), 1)
    at = start + (np.arange(count * each) + 0.5) * reach / (count * each)
    weights = linear_weights(at, length)
    weights[(at < -1) | (at > length)] = 0
    return weights.reshape(count, each, length)


def _check(operation: str, x: Array, regions: Any, size: tuple[int, int], scale: float) -> Array:
    """Return the number of each region's image."""
    check_floats(operation, x, axes=4)
    check_windows(operation, x, size)
    if not 0 < scale < math.inf:
        raise SettingsError(f"{operation}: scale: expected a number above 0, found {scale}")
    if regions.ndim != 2 or regions.shape[1] != 5:
        raise ShapeError(
            f"{operation}: regions: expected shape (R, 5), an image's number and two corners, "
            f"found {regions.shape}"
        )
    if not np.isfinite(regions).all():
        raise ShapeError(
            f"{operation}: regions: expected finite numbers, found NaN or infinity"
            "; leave out regions without corners"
        )
    images = regions[:, 0].astype(np.int64)
    if images.size and not 0 <= images.min() <= images.max() < len(x):
        raise ShapeError(
            f"{operation}: regions: expected images 0 to {len(x) - 1}, found "
            f"{images[(images < 0) | (images >= len(x))][0]}"
            "; count images of the batch from 0"
        )
    return images
