"""Arrays of pixels: images checked, stacked, laid onto canvases; masks moved by nearest pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import ShapeError
from daskdl.kernels.pixels import resample as at
from daskdl.kernels.runtime.memory import empty

Array = NDArray[Any]
Ints = NDArray[np.int64]


def stacked_images(images: Sequence[Array] | Array) -> Array:
    """Return an array (N, H, W, C) of images of one size, an object array (N,) of others."""
    if isinstance(images, np.ndarray):
        return images
    if len(images) and len({image.shape for image in images}) == 1:
        return images[0][None] if len(images) == 1 else np.stack(images)
    result = np.empty(len(images), object)
    result[:] = images
    return result


def check(pixels: Sequence[Array] | Array, name: str) -> None:
    """Raise ShapeError unless all are uint8 or all float32, (H, W, C) with one C."""
    whole = isinstance(pixels, np.ndarray) and pixels.ndim == 4  # then all are as the first is
    for i, image in enumerate(pixels[:1] if whole else pixels):
        if not isinstance(image, np.ndarray):
            kind = type(image).__name__
            raise ShapeError(f"{name}: image {i}: expected an array, found {kind}")
        if image.ndim != 3 or not image.size:
            hint = "; add the axis of channels, image[..., None]" if image.ndim == 2 else ""
            raise ShapeError(
                f"{name}: image {i}: expected (height, width, channels), found {image.shape}{hint}"
            )
        if image.dtype not in (np.uint8, np.float32):
            raise ShapeError(
                f"{name}: image {i}: expected uint8 or float32, found {image.dtype}; convert it "
                "with astype"
            )
        if (image.dtype, image.shape[2]) != (pixels[0].dtype, pixels[0].shape[2]):
            raise ShapeError(
                f"{name}: expected images of one kind, found {pixels[0].dtype} with "
                f"{pixels[0].shape[2]} channels and (image {i}) {image.dtype} with "
                f"{image.shape[2]}; Decode(mode='RGB') makes them equal"
            )


def lay(canvas: Array, image: Array, corner: Ints, colour: Array) -> None:
    """Lay an image onto a canvas and fill the border around it with a colour."""
    (y, x), (skip, over) = np.maximum(corner, 0), np.maximum(-corner, 0)
    height, width = canvas.shape[:2] - corner
    part = image[skip : max(height, 0), over : max(width, 0)]
    bottom, right = y + part.shape[0], x + part.shape[1]
    middle = canvas[y:bottom]
    middle[:, x:right] = part
    for around in (canvas[:y], canvas[bottom:], middle[:, :x], middle[:, right:]):
        paint(around, colour)


def paint(canvas: Array, colour: Array) -> None:
    """Fill a canvas with a colour, a whole row at a time, since NumPy copies rows much faster."""
    row = np.empty(canvas.shape[1:], canvas.dtype)
    row[...] = colour
    canvas[...] = row


def rows_contiguous(image: Array) -> Array:
    """Return an image, or (N, H, W, C), with contiguous rows; a copy if needed."""
    *_, of_rows, of_pixels, of_channels = image.strides
    whole = of_channels == image.itemsize and of_pixels == image.itemsize * image.shape[-1]
    whole = whole and of_rows % image.itemsize == 0
    return image if whole else np.ascontiguousarray(image)


def room(sizes: Ints, channels: int, dtype: np.dtype[Any]) -> Sequence[Array] | Array:
    """Return memory for images of these sizes (N, 2): one array if they are all the same."""
    if (sizes == sizes[0]).all():
        return empty((len(sizes), *map(int, sizes[0]), channels), dtype)
    return [empty((int(h), int(w), channels), dtype) for h, w in sizes]


def warped(mask: Array, inverse: Array, size: Ints) -> Array:
    """Return a mask sampled at the pixels nearest to the mapped places; 0 outside."""
    rows, columns = np.indices(tuple(map(int, size)))
    points = np.stack([columns, rows, np.ones_like(rows)], -1)
    x, y = np.moveaxis(np.floor(points @ inverse.T + 0.5 + 1e-6).astype(np.int64), -1, 0)
    inside = (x >= 0) & (y >= 0) & (x < mask.shape[1]) & (y < mask.shape[0])
    result = np.zeros((*map(int, size), *mask.shape[2:]), mask.dtype)
    result[inside] = mask[y[inside], x[inside]]
    return result


def nearest(mask: Array, g: Ints) -> Array:
    """Return a mask resized by nearest pixels, by a row ``g`` of the geometry."""
    axes = (
        (at.TOP, at.HEIGHT, at.ROWS, at.Y, at.H, at.UPSIDE_DOWN),
        (at.LEFT, at.WIDTH, at.COLUMNS, at.X, at.W, at.MIRRORED),
    )
    wheres = []
    for begin, length, resized, start, count, backwards in axes:
        j = g[start] + np.arange(g[count])
        where = g[begin] + (2 * j + 1) * g[length] // (2 * g[resized])
        wheres.append(where[::-1] if g[backwards] else where)
    return mask[np.ix_(*wheres)]
