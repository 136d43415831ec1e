"""Pictures that tests of image transforms share: photographs and their bytes."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np
import skimage.data
from numpy.typing import NDArray
from PIL import Image


@cache
def photo() -> NDArray[np.uint8]:
    """Return a photograph (75, 100, 3)."""
    small = Image.fromarray(skimage.data.coffee()).resize((100, 75))
    pixels = np.array(small)
    pixels.flags.writeable = False
    return pixels


def photos(n: int = 4) -> NDArray[np.uint8]:
    """Return different photographs (n, 60, 80, 3)."""
    return np.stack([photo()[i : i + 60, 2 * i : 2 * i + 80] for i in range(n)])


def file(pixels: NDArray[np.uint8], format: str = "PNG", **options: Any) -> bytes:
    """Return the bytes of an image file."""
    buffer = io.BytesIO()
    Image.fromarray(pixels.squeeze()).save(buffer, format, **options)
    return buffer.getvalue()


def where(image: NDArray[Any], value: int) -> tuple[int, int, int, int]:
    """Return the box (left, top, right, bottom) around the pixels of a value in a mask (H, W)."""
    rows, columns = np.nonzero(image == value)
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1


def labelled(height: int = 60, width: int = 80) -> dict[str, Any]:
    """Return a batch of one image with two boxes, and a mask of their pixels."""
    mask = np.zeros((1, height, width), np.uint8)
    mask[0, 10:30, 20:50], mask[0, 35:55, 5:15] = 1, 2
    return {
        "x": np.ascontiguousarray(photo()[None, :height, :width]),
        "boxes": [np.array([[20, 10, 50, 30], [5, 35, 15, 55]], np.float32)],
        "labels": [np.array([1, 2])],
        "masks": mask,
        "y": np.array([7]),
    }
