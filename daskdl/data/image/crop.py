"""Crops: in the middle, at a fixed place, at random, and of random size and aspect ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from daskdl.data.image.arguments import below, span
from daskdl.data.image.images import Images
from daskdl.data.image.pixels import Ints
from daskdl.data.image.transform import Sized, Transform
from daskdl.errors import SettingsError

#: Draws of a window after which the largest one in the middle is taken.
ATTEMPTS = 10


@dataclass(frozen=True)
class CenterCrop(Sized):
    """Cut a window out of the middle.

    Parameters
    ----------
    size : int or (rows, columns)
    """

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Cut the windows out."""
        images.crop(_windows((images.sizes - self.shape) // 2, self.shape))


@dataclass(frozen=True)
class RandomCrop(Sized):
    """Cut a window out at a random place.

    Parameters
    ----------
    size : int or (rows, columns)
    """

    random: ClassVar[bool] = True

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Cut the windows out."""
        room = images.sizes - self.shape
        corners = np.where(room < 0, room, below(rng, np.maximum(room, 0)))
        images.crop(_windows(corners, self.shape))


@dataclass(frozen=True)
class FixedCrop(Transform):
    """Cut the same window out of each image.

    Parameters
    ----------
    left, top, right, bottom : float
        Edges in pixels, or as fractions of the image's width and height.
    fractions : bool

    Examples
    --------
    >>> x = np.zeros((2, 20, 30, 3), np.uint8)
    >>> FixedCrop(0, 0, 10, 5)(x).shape, FixedCrop(0.5, 0.5, 1, 1, fractions=True)(x).shape
    ((2, 5, 10, 3), (2, 10, 15, 3))
    """

    left: float
    top: float
    right: float
    bottom: float
    fractions: bool = False

    def __post_init__(self) -> None:
        edges = (self.left, self.top, self.right, self.bottom)
        limit = 1 if self.fractions else np.inf
        if not (0 <= self.left < self.right <= limit and 0 <= self.top < self.bottom <= limit):
            raise SettingsError(
                f"FixedCrop: expected left < right and top < bottom within the image, found {edges}"
            )

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Cut the windows out."""
        unit = images.sizes if self.fractions else 1
        first = np.rint(np.multiply([self.top, self.left], unit))
        last = np.rint(np.multiply([self.bottom, self.right], unit))
        images.crop(_windows(np.broadcast_to(first, images.sizes.shape), last - first))


@dataclass(frozen=True)
class RandomResizedCrop(Sized):
    """Cut a window of random area, aspect ratio and place, and resize it.

    C. Szegedy et al., Going Deeper with Convolutions, arXiv 1409.4842. A window that does not fit
    is drawn again. After ten draws the largest window with an allowed aspect ratio is cut out of
    the middle.

    Parameters
    ----------
    size : int or (rows, columns)
    area : (low, high)
        Fractions of the image's area.
    aspect : (low, high)
        Width over height, uniform in the logarithm.
    filter, antialias :
        See :class:`~daskdl.data.image.Resize`.
    """

    area: tuple[float, float] = (0.08, 1.0)
    aspect: tuple[float, float] = (3 / 4, 4 / 3)
    filter: str = "bilinear"
    antialias: bool = True
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("area", "aspect"):
            low, _ = span(f"RandomResizedCrop: {name}", getattr(self, name), least=0)
            if low == 0:
                raise SettingsError(
                    f"RandomResizedCrop: {name}: expected more than 0, found {getattr(self, name)}"
                )

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Cut the windows out and resize them."""
        images.crop(self.windows(images.sizes, rng))
        images.resize(self.shape, self.filter, self.antialias)

    def windows(self, sizes: Ints, rng: np.random.Generator) -> Ints:
        """Draw a window for images of these sizes (N, 2)."""
        n, shape = len(sizes), (len(sizes), ATTEMPTS)
        heights, widths = sizes[:, :1], sizes[:, 1:]
        areas = rng.uniform(*self.area, shape) * (heights * widths)
        aspects = np.exp(rng.uniform(np.log(self.aspect[0]), np.log(self.aspect[1]), shape))
        rows, columns = np.rint(np.sqrt(areas / aspects)), np.rint(np.sqrt(areas * aspects))
        fits = (rows >= 1) & (columns >= 1) & (rows <= heights) & (columns <= widths)
        first = fits.argmax(1)
        drawn = np.stack([rows, columns], 2)[np.arange(n), first]
        middle = self._largest(sizes)
        size = np.where(fits.any(1)[:, None], drawn, middle).astype(np.int64)
        corners = below(rng, sizes - size)
        corners = np.where(fits.any(1)[:, None], corners, (sizes - size) // 2)
        return _windows(corners, size)

    def _largest(self, sizes: Ints) -> Ints:
        height, width = sizes.T
        low, high = self.aspect
        rows = np.minimum(height, np.rint(width / low))
        columns = np.minimum(width, np.rint(height * high))
        return np.maximum(np.stack([rows, columns], 1), 1).astype(np.int64)


def _windows(corners: Ints, sizes: Ints) -> Ints:
    sizes = np.broadcast_to(sizes, corners.shape)
    return np.concatenate([corners, sizes], 1).astype(np.int64)
