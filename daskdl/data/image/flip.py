"""Flips: images mirrored left to right or upside down, each with a probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from daskdl.data.image.arguments import share
from daskdl.data.image.images import Images
from daskdl.data.image.transform import Transform


@dataclass(frozen=True)
class HorizontalFlip(Transform):
    """Mirror left to right.

    Parameters
    ----------
    probability : float
        Of each image; 1 mirrors all and draws nothing.

    Examples
    --------
    >>> x = np.zeros((2, 20, 30, 3), np.uint8)
    >>> HorizontalFlip()(x, rng=np.random.default_rng(0)).shape
    (2, 20, 30, 3)
    """

    probability: float = 0.5
    axis: ClassVar[int] = 1

    def __post_init__(self) -> None:
        share(f"{self.name}: probability", self.probability)

    @property
    def needs_rng(self) -> bool:
        """Whether it is left to chance."""
        return 0 < self.probability < 1

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Mirror them."""
        which = np.full(len(images), self.probability == 1)
        if self.needs_rng:
            which = rng.random(len(images)) < self.probability
        images.flip(which, self.axis)


@dataclass(frozen=True)
class VerticalFlip(HorizontalFlip):
    """Turn upside down, by mirroring.

    Parameters
    ----------
    probability : float
        Of each image; 1 mirrors all and draws nothing.

    Examples
    --------
    >>> x = np.zeros((2, 20, 30, 3), np.uint8)
    >>> VerticalFlip()(x, rng=np.random.default_rng(0)).shape
    (2, 20, 30, 3)
    """

    axis: ClassVar[int] = 0
