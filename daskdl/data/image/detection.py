"""Crops for detectors, which keep enough of some object, and boxes as fractions of the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from daskdl.data.image.arguments import share, span
from daskdl.data.image.boxes import centred, iou
from daskdl.data.image.images import Images
from daskdl.data.image.transform import Transform
from daskdl.errors import SettingsError, ShapeError


@dataclass(frozen=True)
class RandomIoUCrop(Transform):
    """Cut a window that overlaps some object by a drawn amount, as for SSD.

    W. Liu et al., SSD: Single Shot MultiBox Detector, arXiv 1512.02325, section 2.2. One of
    ``overlaps`` is drawn for each image, or the choice to leave it whole. Then windows are drawn.
    The first one that contains a box's centre, and overlaps the box by that much (intersection over
    union), is cut out; if there is none, the image stays whole. Boxes with their centres outside of
    the window are dropped.

    Parameters
    ----------
    overlaps : sequence of float
        Least intersections over unions; 0 takes any window with a box's centre.
    whole : bool
        Whether the image may also stay whole.
    scale : (low, high)
        A window's sides, as fractions of the image's.
    aspect : (low, high)
        Width over height of a window.
    attempts : int
        Number of windows drawn for an image.
    """

    overlaps: Sequence[float] = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
    whole: bool = True
    scale: tuple[float, float] = (0.3, 1.0)
    aspect: tuple[float, float] = (0.5, 2.0)
    attempts: int = 50
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for overlap in self.overlaps:
            share("RandomIoUCrop: overlaps", overlap)
        low, high = span("RandomIoUCrop: scale", self.scale, least=0)
        if not 0 < low <= high <= 1:
            raise SettingsError(
                f"RandomIoUCrop: scale: expected 0 < low <= high <= 1, found {self.scale!r}"
            )
        span("RandomIoUCrop: aspect", self.aspect, least=0)
        if self.attempts < 1 or not (len(self.overlaps) or self.whole):
            raise SettingsError(
                "RandomIoUCrop: expected an attempt and something to choose from, found attempts="
                f"{self.attempts!r}, overlaps={self.overlaps!r}"
            )

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Cut the windows out."""
        if images.boxes is None:
            raise ShapeError(
                "RandomIoUCrop: expected images with boxes, found none"
                "; give boxes, or use RandomCrop"
            )
        sizes = images.sizes
        choices = rng.integers(0, len(self.overlaps) + self.whole, len(images))
        windows = np.concatenate([np.zeros_like(sizes), sizes], 1)
        for i, choice in enumerate(choices):
            if choice < len(self.overlaps):
                window = self._window(sizes[i], images.boxes.of(i), self.overlaps[choice], rng)
                windows[i] = windows[i] if window is None else window
        whole = (windows[:, 2:] == sizes).all(1)
        images.crop(windows, keep=lambda boxes, edges: centred(boxes, edges) | whole[boxes.owners])

    def _window(
        self, size: NDArray[np.int64], boxes: NDArray[np.float32], overlap: float,
        rng: np.random.Generator,
    ) -> NDArray[np.int64] | None:  # fmt: skip
        """Draw all windows at once; return the first that fits: top, left, height, width."""
        drawn = np.rint(size * rng.uniform(*self.scale, (self.attempts, 2))).astype(np.int64)
        drawn = np.maximum(drawn, 1)
        corners = rng.integers(0, size - drawn, endpoint=True)
        aspects = drawn[:, 1] / drawn[:, 0]
        fits = (aspects >= self.aspect[0]) & (aspects <= self.aspect[1])
        edges = np.concatenate([corners, corners + drawn], 1)[:, [1, 0, 3, 2]]
        centres = (boxes[:, :2] + boxes[:, 2:]) / 2
        inside = (centres >= edges[:, None, :2]).all(2) & (centres < edges[:, None, 2:]).all(2)
        fits &= (inside & (iou(edges, boxes) >= overlap)).any(1)
        if not fits.any():
            return None
        first = int(np.argmax(fits))
        return np.concatenate([corners[first], drawn[first]])


@dataclass(frozen=True)
class NormalizeBoxes(Transform):
    """Make boxes fractions of their image's width and height; use it after all that moves them.

    Examples
    --------
    >>> batch = {"x": np.zeros((1, 20, 40, 3), np.uint8), "boxes": [[[0.0, 5.0, 20.0, 10.0]]]}
    >>> NormalizeBoxes()(batch)["boxes"][0]
    array([[0.  , 0.25, 0.5 , 0.5 ]], dtype=float32)
    """

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Divide the boxes."""
        if images.boxes is not None:
            images.boxes.scale(1 / images.sizes)
