"""Affine maps and flips: rotation, shift, scale, shear and mirrors, drawn at random or fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskdl.data.image.arguments import Range, share, span
from daskdl.data.image.fill import Colour
from daskdl.data.image.images import Images
from daskdl.data.image.transform import Transform

Array = NDArray[Any]


@dataclass(frozen=True)
class Affine(Transform):
    """Rotate, shear and scale each image around its middle, then shift it.

    Every argument is a number, or (low, high) to draw from. Pixels are interpolated linearly. A box
    becomes the box around its moved corners; masks take the nearest value.

    Parameters
    ----------
    degrees : float or (low, high)
        Angle, counter-clockwise.
    scale : float or (low, high)
        Factor; above 1 enlarges.
    shear : float or (low, high)
        Degrees by which vertical lines lean to the left.
    shift_x, shift_y : float or (low, high)
        Fractions of the image's width and height, to the right and down.
    fill : float or (C,)
        Colour outside of the image, in fractions of white; in masks 0.
    expand : bool
        Whether the result grows to show the whole image.
    """

    degrees: Range = 0.0
    scale: Range = 1.0
    shear: Range = 0.0
    shift_x: Range = 0.0
    shift_y: Range = 0.0
    fill: Colour = 0.0
    expand: bool = False

    def __post_init__(self) -> None:
        self._spans()

    def _spans(self) -> dict[str, tuple[float, float]]:
        least = {"scale": 1e-6}
        return {
            key: span(f"{self.name}: {key}", getattr(self, key), least=least.get(key, -np.inf))
            for key in ("degrees", "scale", "shear", "shift_x", "shift_y")
        }

    @property
    def needs_rng(self) -> bool:
        """Whether any argument is a range."""
        return any(low < high for low, high in self._spans().values())

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Map the images."""
        n = len(images)
        drawn = {
            key: rng.uniform(low, high, n) if low < high else np.full(n, low)
            for key, (low, high) in self._spans().items()
        }
        if all((drawn[k] == (k == "scale")).all() for k in drawn):
            return
        linear = _linear(drawn["degrees"], drawn["shear"], drawn["scale"])
        before = images.sizes[:, ::-1].astype(float)  # width and height
        after = before
        if self.expand:
            corners = np.array([[1, 1], [1, -1]]) / 2 * before[:, None]
            reach = np.abs(np.einsum("nij,nkj->nki", linear, corners)).max(1)
            after = np.maximum(np.ceil(2 * reach - 1e-6), 1)
        shift = np.stack([drawn["shift_x"], drawn["shift_y"]], 1) * before
        # Edges to edges: target = linear (source - before / 2) + after / 2 + shift.
        offset = after / 2 + shift - np.einsum("nij,nj->ni", linear, before / 2)
        forward = np.concatenate([linear, offset[:, :, None]], 2)
        images.map_affinely(forward, after[:, ::-1].astype(np.int64), images.colour(self.fill))


def Rotate(  # noqa: N802  (stands where transforms stand)
    degrees: Range, *, expand: bool = False, fill: Colour = 0.0
) -> Affine:
    """Return the :class:`Affine` that rotates counter-clockwise around the middle.

    Examples
    --------
    >>> image = np.array([[[1], [2]], [[3], [4]]], np.uint8)
    >>> Rotate(90)(image)[..., 0]
    array([[2, 4],
           [1, 3]], dtype=uint8)
    """
    return Affine(degrees=degrees, expand=expand, fill=fill)


def _linear(degrees: Array, shear: Array, scale: Array) -> Array:
    """Return matrices (N, 2, 2) of columns and rows; rows count downwards."""
    angle, lean = np.deg2rad(degrees), np.deg2rad(shear)
    cos, sin = np.cos(angle), np.sin(angle)
    rotation = np.stack([np.stack([cos, sin], 1), np.stack([-sin, cos], 1)], 1)
    leaning = np.zeros_like(rotation)
    leaning[:, 0, 0] = leaning[:, 1, 1] = 1
    leaning[:, 0, 1] = np.tan(lean)
    return scale[:, None, None] * (rotation @ leaning)


@dataclass(frozen=True)
class HorizontalFlip(Transform):
    """Mirror left to right.

    Parameters
    ----------
    probability : float
        Probability for each image; 1 mirrors all without drawing.
    """

    probability: float = 0.5
    axis: ClassVar[int] = 1

    def __post_init__(self) -> None:
        share(f"{self.name}: probability", self.probability)

    @property
    def needs_rng(self) -> bool:
        """Whether it draws at random."""
        return 0 < self.probability < 1

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Mirror the images."""
        which = np.full(len(images), self.probability == 1)
        if self.needs_rng:
            which = rng.random(len(images)) < self.probability
        images.flip(which, self.axis)


@dataclass(frozen=True)
class VerticalFlip(HorizontalFlip):
    """Mirror upside down; the parameter is :class:`HorizontalFlip`'s."""

    axis: ClassVar[int] = 0
