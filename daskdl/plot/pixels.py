"""Arrays as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from daskdl.data.image.pillow import need_pillow
from daskdl.errors import ShapeError

if TYPE_CHECKING:
    from PIL.Image import Image


def as_picture(name: str, image: ArrayLike) -> Image:
    """Return an image uint8 (H, W, C), or floats from 0 to 1, as a picture of its own in RGB.

    Raises
    ------
    ShapeError
        When it is no image of 1 or 3 channels.
    """
    need_pillow(f"plot.{name}")
    from PIL import Image

    pixels = np.asarray(image)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or not pixels.size:
        raise ShapeError(
            f"plot.{name}: expected an image (height, width, 1 or 3), found {np.shape(image)}"
            "; take one image of a batch, and put its channels last"
        )
    if pixels.dtype != np.uint8:
        pixels = np.rint(255 * np.clip(np.nan_to_num(pixels), 0, 1)).astype(np.uint8)
    return Image.fromarray(np.repeat(pixels, 3 // pixels.shape[2], axis=2))
