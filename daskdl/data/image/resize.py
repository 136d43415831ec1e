"""Sizes and levels: resizing images, and centring and scaling their levels as float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskdl.data.image.arguments import one_of
from daskdl.data.image.images import Images
from daskdl.data.image.pixels import Ints
from daskdl.data.image.transform import Sized, Transform
from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.pixels.resample import FILTERS


@dataclass(frozen=True)
class Resize(Sized):
    """Resize to one size; the aspect ratio may change.

    Parameters
    ----------
    size : int or (rows, columns)
    filter : "bilinear", "bicubic" (R. Keys, a = -1/2) or "nearest"
    antialias : bool
        Whether every pixel counts when an image shrinks, as in Pillow and scikit-image. Without it
        the result is OpenCV's INTER_LINEAR, which reads few pixels.
    """

    filter: str = "bilinear"
    antialias: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("Resize: filter", self.filter, tuple(FILTERS))

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Resize the images."""
        images.resize(self.shape, self.filter, self.antialias)


@dataclass(frozen=True)
class ShortestSide(Transform):
    """Resize the shorter side to a given length, and keep the aspect ratio.

    Parameters
    ----------
    size : int
        Pixels of the shorter side.
    longest : int, optional
        Largest length of the longer side; the shorter side may then be shorter.
    multiple_of : int
        Both sides are rounded to multiples of it, for networks with strides.
    filter, antialias :
        See :class:`Resize`.

    Examples
    --------
    >>> x = np.zeros((2, 20, 30, 3), np.uint8)
    >>> ShortestSide(10)(x).shape
    (2, 10, 15, 3)
    """

    size: int
    longest: int | None = None
    multiple_of: int = 1
    filter: str = "bilinear"
    antialias: bool = True

    def __post_init__(self) -> None:
        for name in ("size", "multiple_of", "longest"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise SettingsError(
                    f"ShortestSide: {name}: expected a whole number from 1, found {value!r}"
                )
        one_of("ShortestSide: filter", self.filter, tuple(FILTERS))

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Resize the images."""
        shortest = np.full(len(images), self.size)
        sizes = _by_shortest(images.sizes, shortest, self.longest, self.multiple_of)
        images.resize(sizes, self.filter, self.antialias)


@dataclass(frozen=True)
class RandomShortestSide(Transform):
    """Resize each image; its shorter side is drawn from several, all equally likely.

    Parameters
    ----------
    sizes : sequence of int
        Lengths such as ``range(256, 481)`` or ``(400, 500, 600)``.
    longest, multiple_of, filter, antialias :
        See :class:`ShortestSide`.
    """

    sizes: Sequence[int]
    longest: int | None = None
    multiple_of: int = 1
    filter: str = "bilinear"
    antialias: bool = True
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not len(self.sizes):
            raise SettingsError(
                f"RandomShortestSide: sizes: expected some numbers, found {self.sizes!r}"
            )
        for size in (min(self.sizes), max(self.sizes)):
            ShortestSide(size, self.longest, self.multiple_of, self.filter)

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Resize the images."""
        shortest = rng.choice(np.asarray(self.sizes), len(images))
        sizes = _by_shortest(images.sizes, shortest, self.longest, self.multiple_of)
        images.resize(sizes, self.filter, self.antialias)


def _by_shortest(sizes: Ints, shortest: Ints, longest: int | None, multiple: int) -> Ints:
    # Whole numbers, so that a side that is to be 256 never comes out as 255.
    least, most = sizes.min(1), sizes.max(1)
    above, below = shortest, least
    if longest is not None:
        long = most * shortest > longest * least
        above, below = np.where(long, longest, shortest), np.where(long, most, least)
    units = (2 * sizes * above[:, None] + below[:, None] * multiple) // (
        2 * below[:, None] * multiple
    )
    return np.maximum(units, 1) * multiple


#: Of ImageNet's training images, red, green and blue, in fractions of white.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True, eq=False)
class Normalize(Transform):
    """Make images float32 and ``(image - mean) / std``.

    Parameters
    ----------
    mean, std : float or (C,)
        One number, or one for each channel, in fractions of white (255 in uint8 images, 1 in
        float32 ones). ``mean`` may also be a mean image (H, W, C).

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
        """Normalise the images."""
        mean, std, channels = (
            np.asarray(self.mean, float),
            np.asarray(self.std, float),
            images.channels,
        )
        for name, value in (("mean", mean), ("std", std)):
            if value.ndim and value.shape[-1] not in (1, channels):
                raise ShapeError(
                    f"Normalize: {name}: expected {channels} channels as the images have, found "
                    f"{value.shape[-1]}; give one number for each channel, or one for all"
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
    """Return the transform from uint8 images to float32 images from 0 to 1.

    Examples
    --------
    >>> ToFloat()
    Normalize(mean=0.0, std=1.0)
    """
    return Normalize(mean=0.0, std=1.0)
