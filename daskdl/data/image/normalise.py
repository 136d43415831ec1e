"""Normalisation: levels become float32, centred and scaled by channel or by pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.data.image.images import Images
from daskdl.data.image.transform import Transform
from daskdl.errors import SettingsError, ShapeError

#: Of ImageNet's training images, red, green and blue, in fractions of white.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True, eq=False)
class Normalize(Transform):
    """Make images float32 and ``(image - mean) / std``.

    Parameters
    ----------
    mean, std : float or (C,)
        Of all images, or of each channel, in fractions of white (255 in uint8 images, 1 in float32
        ones). ``mean`` may also be a mean image (H, W, C).

    Examples
    --------
    >>> x = np.zeros((2, 20, 30, 3), np.uint8)
    >>> Normalize()(x)[0, 0, 0].round(3)
    array([-2.118, -2.036, -1.804], dtype=float32)
    """

    mean: Any = IMAGENET_MEAN
    std: Any = IMAGENET_STD

    def __post_init__(self) -> None:
        std = np.asarray(self.std, float)
        if std.ndim > 1 or not (std > 0).all():
            raise SettingsError(
                f"Normalize: std: expected one number above 0 for each channel, found {self.std!r}"
            )
        if np.ndim(self.mean) not in (0, 1, 3):
            raise SettingsError(
                "Normalize: mean: expected a number, one for each channel or an image (H, W, C), "
                f"found shape {np.shape(self.mean)}"
            )

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Normalise them."""
        mean, std, channels = (
            np.asarray(self.mean, float),
            np.asarray(self.std, float),
            images.channels,
        )
        for name, value in (("mean", mean), ("std", std)):
            if value.ndim and value.shape[-1] not in (1, channels):
                raise ShapeError(
                    f"Normalize: {name}: expected {channels} channels as the images have, found "
                    f"{value.shape[-1]}"
                    "; give one number for each channel, or one for all"
                )
            if images.dtype == np.uint8 and value.max() > 1:
                raise SettingsError(
                    f"Normalize: {name}: expected fractions of white, 0 to 1, found "
                    f"{value.max():g}; divide levels by 255"
                )
        scale = np.broadcast_to(1 / (images.white * std), channels)
        if mean.ndim < 3:
            images.scale(scale, np.broadcast_to(-mean / std, channels))
            return
        if (images.sizes != mean.shape[:2]).any():
            i = int(np.argmax((images.sizes != mean.shape[:2]).any(1)))
            raise ShapeError(
                f"Normalize: expected images of the mean image's size {mean.shape[:2]}, found "
                f"{tuple(map(int, images.sizes[i]))} (image {i}); crop or resize them before"
            )
        images.scale(scale, np.zeros(channels))
        images.replace(np.asarray(images.pixels) - np.float32(mean / std))


def ToFloat() -> Normalize:  # noqa: N802  (stands where transforms stand)
    """Return the transform that makes float32 images from 0 to 1 of uint8 images.

    Examples
    --------
    >>> ToFloat()
    Normalize(mean=0.0, std=1.0)
    """
    return Normalize(mean=0.0, std=1.0)
