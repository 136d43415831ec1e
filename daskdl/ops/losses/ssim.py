"""Structural similarity of images, within Gaussian windows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.products.matmul import matmul
from daskdl.kernels.vectors import functions
from daskdl.ops.losses.reduction import Parts, loss, pair
from daskdl.tensor import Array

__all__ = ["ssim"]


@loss
def ssim(
    prediction: Array,
    target: Array,
    *,
    data_range: float = 1.0,
    window: int = 11,
    sigma: float = 1.5,
) -> Parts:
    """1 - the mean structural similarity of two images.

    Z. Wang et al., Image Quality Assessment: From Error Visibility to Structural Similarity, IEEE
    Trans. Image Process. 13 (2004): Gaussian windows that lie wholly inside the image, constants
    (0.01 data_range)² and (0.03 data_range)².

    Parameters
    ----------
    prediction, target : arrays of one shape, (N, ..., H, W, C)
        Each channel counts as an image. Both arrays get a gradient.
    data_range : float
        Difference of the largest and the smallest possible number.
    window : int
        Odd number of pixels across.
    sigma : float
        Standard deviation of the Gaussian, in pixels.
    """
    target = pair("ssim", prediction, target)
    if window < 1 or window % 2 != 1 or not sigma > 0 or not data_range > 0:
        raise SettingsError(
            "ssim: expected an odd window, sigma > 0 and data_range > 0, found "
            f"{window}, {sigma} and {data_range}"
            "; data_range is the largest value less the smallest"
        )
    if prediction.ndim < 4 or min(prediction.shape[-3:-1]) < window:
        raise ShapeError(
            f"ssim: expected images (N, ..., H, W, C) of at least {window} x {window} pixels, "
            f"found shape {prediction.shape}"
            "; take a smaller window, or larger images"
        )
    planes = [_planes(x) for x in (prediction, target)]
    n, dtype = len(prediction), prediction.dtype
    # Subtract a constant, so that variances, differences of squares, keep their digits.
    offset = planes[1].mean((1, 2), keepdims=True)
    x, y = (plane - offset for plane in planes)
    height, width = (_band(size, window, sigma, dtype.str) for size in x.shape[1:])

    def blur(image: Array) -> Array:
        return matmul(height, matmul(image, width.T))

    def spread(gradient: Array) -> Array:
        return matmul(height.T, matmul(gradient, width))

    mx, my = blur(x), blur(y)
    both = blur(x * y) - mx * my
    squares = blur(x * x + y * y) - mx * mx - my * my
    mx, my = mx + offset, my + offset
    c1, c2 = (dtype.type((k * data_range) ** 2) for k in (0.01, 0.03))
    a1, a2 = 2 * mx * my + c1, 2 * both + c2
    b1, b2 = mx * mx + my * my + c1, squares + c2
    similar = a1 * a2 / (b1 * b2)
    values = 1 - similar.mean((1, 2), dtype=np.float64).reshape(n, -1)

    def towards(x: Array, y: Array, mx: Array, my: Array, s: Array) -> Array:
        # x and y are without the offset, their means with it
        scale = s.reshape(-1, 1, 1) if s.ndim else s
        scale = np.repeat(scale, len(x) // n, 0) if s.ndim else scale
        scale = -scale / similar[0].size
        to_squares = -scale * similar / b2
        to_product = scale * 2 * a1 / (b1 * b2)
        # through the window's mean: of luminance, of the variance and of the covariance
        to_mean = scale * (2 * my * a2 / (b1 * b2) - similar * 2 * mx / b1)
        to_mean -= 2 * to_squares * (mx - offset) + to_product * (my - offset)
        result = spread(to_mean) + 2 * x * spread(to_squares) + y * spread(to_product)
        return _images(result, prediction.shape)

    return values, (lambda s: towards(x, y, mx, my, s), lambda s: towards(y, x, my, mx, s))


def _planes(images: Array) -> Array:
    """Return images (..., H, W, C) as (planes, H, W), a sample's planes in a row."""
    return np.moveaxis(images, -1, -3).reshape(-1, *images.shape[-3:-1])


def _images(planes: Array, shape: tuple[int, ...]) -> Array:
    *lead, height, width, channels = shape
    return np.moveaxis(planes.reshape(*lead, channels, height, width), -3, -1)


@lru_cache(maxsize=32)
def _band(size: int, window: int, sigma: float, dtype: str) -> Array:
    """Return the matrix (size - window + 1, size) of Gaussian means along an axis.

    A product with it needs many times the arithmetic of the window's taps, but is faster.
    """
    taps = functions.exp(-0.5 * np.square((np.arange(window) - window // 2) / sigma))
    taps /= taps.sum()
    rows = np.arange(size - window + 1)[:, None]
    band = np.zeros((size - window + 1, size), dtype)
    band[rows, rows + np.arange(window)] = taps
    band.flags.writeable = False
    return band
