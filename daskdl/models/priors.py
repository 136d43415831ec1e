"""Prior boxes: the places, sizes and shapes from which a single-shot detector starts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.nn.core.module import Module
from daskdl.tensor import Array, Tensor


class PriorBoxes(Module, pure=True):
    """Boxes of several shapes around each cell of several feature maps.

    Each cell has a square of its map's scale, one of the geometric mean with the next scale, and
    for each of the map's ratios r a box that is r times as wide as high, and one that is as much
    higher.

    W. Liu et al., SSD: Single Shot MultiBox Detector, arXiv 1512.02325, section 2.2.

    Parameters
    ----------
    maps : sequence of int
        Rows, and columns, of each feature map.
    scales : sequence of float
        Side of each map's squares as a fraction of the image's; one more for the last mean.
    ratios : sequence of sequences of float
        Of each map.
    steps : sequence of float, optional
        From cell to cell, as a fraction of the image; one over the map's rows by default.

    Raises
    ------
    SettingsError
        When these do not fit together.

    Examples
    --------
    >>> PriorBoxes([2, 1], [0.3, 0.6, 0.9], [[2], []]).array.shape
    (18, 4)
    """

    def __init__(
        self,
        maps: Sequence[int],
        scales: Sequence[float],
        ratios: Sequence[Sequence[float]],
        steps: Sequence[float] | None = None,
    ) -> None:
        self.maps, self.ratios = tuple(maps), tuple(tuple(r) for r in ratios)
        self.scales = tuple(scales)
        self.steps = tuple(1 / n for n in maps) if steps is None else tuple(steps)
        if not len(self.maps) == len(self.ratios) == len(self.steps) == len(self.scales) - 1:
            raise SettingsError(
                f"PriorBoxes: expected ratios and steps for each of {len(self.maps)} maps and one "
                f"scale more, found {len(self.ratios)}, {len(self.steps)} and {len(self.scales)}"
                "; give each map its own"
            )

    @property
    def counts(self) -> tuple[int, ...]:
        """Boxes of a cell of each map."""
        return tuple(2 + 2 * len(ratios) for ratios in self.ratios)

    @cached_property
    def array(self) -> Array:
        """Centre x and y, width and height as fractions of the image, float32 (P, 4).

        By map, row, column and shape, in torchvision's order; sides are at most 1.
        """
        boxes_of_maps = []
        for k, (rows, step) in enumerate(zip(self.maps, self.steps, strict=True)):
            side, mean = self.scales[k], np.sqrt(self.scales[k] * self.scales[k + 1])
            shapes = [(side, side), (mean, mean)]
            for ratio in self.ratios[k]:
                wide, high = side * np.sqrt(ratio), side / np.sqrt(ratio)
                shapes += [(wide, high), (high, wide)]
            y, x = np.meshgrid(*[(np.arange(rows) + 0.5) * step] * 2, indexing="ij")
            centres = np.stack([x, y], -1).reshape(-1, 1, 2)
            boxes = np.empty((rows * rows, len(shapes), 4))
            boxes[..., :2], boxes[..., 2:] = centres, np.clip(shapes, 0, 1)
            boxes_of_maps.append(boxes.reshape(-1, 4))
        return np.concatenate(boxes_of_maps).astype(np.float32)

    def forward(self, *features: Any) -> Tensor:
        """Return the boxes, whatever the features are."""
        return Tensor(self.array)
