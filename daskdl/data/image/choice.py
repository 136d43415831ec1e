"""Choices: transforms for some images only, and functions of one image."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskdl.data.image.arguments import share
from daskdl.data.image.images import Images
from daskdl.data.image.transform import Pipeline, Transform
from daskdl.errors import SettingsError, ShapeError


@dataclass(frozen=True)
class RandomChoice(Transform):
    """Apply one of several transforms to each image.

    Parameters
    ----------
    transforms : sequence of Transform
        ``Pipeline([])`` leaves an image unchanged.
    weights : sequence of float, optional
        Probability of each, up to a common factor; by default equal.

    Examples
    --------
    >>> from daskdl.data.image import Fill
    >>> x = np.zeros((4, 1, 1, 1), np.uint8)
    >>> choice = RandomChoice([Fill(0, 0, 1, 1, 1.0), Fill(0, 0, 1, 1, 0.2)], weights=[1, 0])
    >>> choice(x, rng=np.random.default_rng(0)).ravel()
    array([255, 255, 255, 255], dtype=uint8)
    """

    transforms: Sequence[Transform]
    weights: Sequence[float] | None = None
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not len(self.transforms) or not all(isinstance(t, Transform) for t in self.transforms):
            raise SettingsError(
                f"RandomChoice: expected transforms to choose from, found {self.transforms!r}"
            )
        weights = np.asarray([1.0] if self.weights is None else self.weights, float)
        fits = self.weights is None or weights.shape == (len(self.transforms),)
        if not fits or (weights < 0).any() or weights.sum() <= 0:
            raise SettingsError(
                f"RandomChoice: weights: expected {len(self.transforms)} numbers of at least 0, "
                f"found {self.weights!r}"
            )

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Apply the transforms."""
        weights = np.ones(len(self.transforms)) if self.weights is None else self.weights
        chances = np.asarray(weights, float) / np.sum(weights)
        chosen = rng.choice(len(self.transforms), len(images), p=chances)
        for i, transform in enumerate(self.transforms):
            which = np.flatnonzero(chosen == i)
            if len(which) and transform != Pipeline([]):
                some = images.take(which)
                transform.run(some, rng)
                images.put(which, some)


def RandomApply(transform: Transform, probability: float = 0.5) -> RandomChoice:  # noqa: N802
    """Return a transform that is applied to each image with a probability.

    Examples
    --------
    >>> from daskdl.data.image import Fill
    >>> x = np.arange(2, dtype=np.uint8).reshape(1, 1, 2, 1)
    >>> RandomApply(Fill(0, 0, 1, 1), 1.0)(x, rng=np.random.default_rng(0)).ravel()
    array([255, 255], dtype=uint8)
    """
    share("RandomApply: probability", probability)
    return RandomChoice([transform, Pipeline([])], [probability, 1 - probability])


@dataclass(frozen=True)
class PerImage(Transform):
    """Make a transform of a function of one image, such as a function of scikit-image.

    Boxes and masks do not change. So if a batch has some, the function must not move pixels.

    Parameters
    ----------
    function : callable
        ``function(image) -> image`` or ``function(image, rng) -> image``, of (H, W, C) uint8 or
        float32. It must not write into the image.

    Examples
    --------
    >>> PerImage(lambda image: 255 - image)(np.zeros((1, 2, 1), np.uint8))[..., 0]
    array([[255, 255]], dtype=uint8)
    """

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise SettingsError(f"PerImage: expected a function, found {self.function!r}")

    @property
    def needs_rng(self) -> bool:
        """Whether the function has an argument ``rng``."""
        try:
            return "rng" in inspect.signature(self.function).parameters
        except (TypeError, ValueError):
            return False

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Call the function with each image."""
        more = {"rng": rng} if self.needs_rng else {}
        before = images.sizes
        images.replace([np.asarray(self.function(image, **more)) for image in images.pixels])
        follows = images.boxes is not None or images.masks is not None
        if follows and (images.sizes != before).any():
            raise ShapeError(
                f"PerImage: expected {self.function!r} to leave the sizes of images that have "
                "boxes or masks, found others"
                "; resize by a transform of this package, which moves boxes and masks along"
            )
