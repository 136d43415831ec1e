"""Fills: canvases around images, at a side or at random, and covered parts of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskdl.data.image.arguments import below, share, span
from daskdl.data.image.crop import RandomResizedCrop
from daskdl.data.image.images import Images
from daskdl.data.image.pixels import paint
from daskdl.data.image.resize import IMAGENET_MEAN
from daskdl.data.image.transform import Sized, Transform
from daskdl.errors import SettingsError
from daskdl.kernels.runtime.memory import empty

#: A colour in fractions of white, one number or one for each channel.
Colour = float | Sequence[float]


@dataclass(frozen=True)
class Pad(Sized):
    """Lay each image into the middle of a canvas of at least a given size.

    Parameters
    ----------
    size : int or (rows, columns)
        Size of the canvas; an image that is longer along a side keeps that side.
    fill : float or (C,)
        Colour in fractions of white.
    centre : bool
        Else the image lies in the canvas's first rows and columns.
    """

    fill: Colour = 0.0
    centre: bool = True

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Lay the images onto canvases."""
        sizes = np.maximum(images.sizes, self.shape)
        if (sizes == images.sizes).all():
            return
        corners = (sizes - images.sizes) // 2 if self.centre else np.zeros_like(sizes)
        images.paste(sizes, corners, self.fill)


@dataclass(frozen=True)
class Expand(Transform):
    """Lay each image on a larger canvas at a random place, so that objects become smaller.

    W. Liu et al., SSD: Single Shot MultiBox Detector, arXiv 1512.02325, section 3.6.

    Parameters
    ----------
    most : float
        Largest ratio of the canvas's sides to the image's.
    fill : float or (C,)
        Colour in fractions of white; by default ImageNet's mean.
    probability : float
        Probability for each image; the others do not change.
    """

    most: float = 4.0
    fill: Colour = IMAGENET_MEAN
    probability: float = 0.5
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        span("Expand: most", (1, self.most), least=1)
        share("Expand: probability", self.probability)

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Lay the images onto canvases."""
        n, before = len(images), images.sizes
        ratios = np.where(rng.random(n) < self.probability, rng.uniform(1, self.most, n), 1)
        sizes = (before * ratios[:, None]).astype(np.int64)
        corners = below(rng, sizes - before)
        which = np.flatnonzero((sizes != before).any(1))
        if len(which):
            some = images.take(which)
            some.paste(sizes[which], corners[which], self.fill)
            images.put(which, some)


@dataclass(frozen=True)
class Fill(Transform):
    """Cover a part of each image with a colour.

    Parameters
    ----------
    left, top, right, bottom : float
        The part's edges, as fractions of the image's width and height.
    fill : float or (C,)
        Colour in fractions of white.

    Examples
    --------
    >>> Fill(0.5, 0.0, 1.0, 1.0)(np.zeros((1, 4, 1), np.uint8))[..., 0]
    array([[  0,   0, 255, 255]], dtype=uint8)
    """

    left: float
    top: float
    right: float
    bottom: float
    fill: Colour = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.left < self.right <= 1 and 0 <= self.top < self.bottom <= 1):
            raise SettingsError(
                "Fill: expected 0 <= left < right <= 1 and 0 <= top < bottom <= 1, found "
                f"{(self.left, self.top, self.right, self.bottom)}"
            )

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Cover the parts."""
        sizes = images.sizes
        first = np.rint(sizes * (self.top, self.left)).astype(np.int64)
        last = np.rint(sizes * (self.bottom, self.right)).astype(np.int64)
        colour = images.colour(self.fill)
        _cover(images, np.arange(len(images)), first, last - first, [colour] * len(images))


@dataclass(frozen=True)
class RandomErasing(Transform):
    """Cover a window of random area, aspect ratio and place.

    Z. Zhong et al., Random Erasing Data Augmentation, arXiv 1708.04896. Boxes and masks stay.

    Parameters
    ----------
    probability : float
        Probability for each image.
    area : (low, high)
        Fractions of the image's area.
    aspect : (low, high)
        Width over height, uniform in the logarithm.
    fill : float, (C,) or "noise"
        Colour in fractions of white; before :class:`Normalize` its mean becomes 0. "noise" draws
        every number from 0 to white.
    """

    probability: float = 0.5
    area: tuple[float, float] = (0.02, 1 / 3)
    aspect: tuple[float, float] = (0.3, 1 / 0.3)
    fill: Colour | str = IMAGENET_MEAN
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        share("RandomErasing: probability", self.probability)
        RandomResizedCrop(1, self.area, self.aspect)
        if isinstance(self.fill, str) and self.fill != "noise":
            raise SettingsError(
                f"RandomErasing: fill: expected a colour or 'noise', found {self.fill!r}"
            )

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Cover windows of some images."""
        done = np.flatnonzero(rng.random(len(images)) < self.probability)
        windows = RandomResizedCrop(1, self.area, self.aspect).windows(images.sizes, rng)[done]
        fills: list[Any]
        if isinstance(self.fill, str):
            shapes = [(*size, images.channels) for size in windows[:, 2:]]
            fills = [images.white * rng.random(shape, np.float32) for shape in shapes]
            fills = [np.rint(f).astype(images.dtype) if images.white > 1 else f for f in fills]
        else:
            fills = [images.colour(self.fill)] * len(done)
        _cover(images, done, windows[:, :2], windows[:, 2:], fills)


def _cover(
    images: Images, which: NDArray[Any], corners: Any, sizes: Any, fills: Sequence[Any]
) -> None:
    """Write colours or pixels into a window of some images."""
    if not len(which):
        return
    before, some = images.pixels, set(which.tolist())
    pixels: Any
    if isinstance(before, np.ndarray):
        pixels = empty(before.shape, before.dtype)
        pixels[...] = before
    else:
        pixels = [np.array(image) if i in some else image for i, image in enumerate(before)]
    for i, (y, x), (h, w), fill in zip(which, corners, sizes, fills, strict=True):
        window = pixels[i][y : y + h, x : x + w]
        if fill.ndim == 1:
            paint(window, fill)
        else:
            window[...] = fill
    images.replace(pixels)
