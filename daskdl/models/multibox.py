"""Single-shot detectors: prior boxes, targets as an array of fixed shape, and the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daskdl.data.ragged import Ragged
from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.detection import match
from daskdl.nn.core.module import Module
from daskdl.nn.losses.loss import Loss, parts
from daskdl.ops import losses as ops
from daskdl.tensor import Array, Tensor


class PriorBoxes(Module, pure=True):
    """Boxes of several shapes around each cell of several feature maps.

    Each cell has a square of its map's scale, a square of the geometric mean with the next scale,
    and for each of the map's ratios r a box r times as wide as high, and one r times as high as
    wide.

    W. Liu et al., SSD: Single Shot MultiBox Detector, arXiv 1512.02325, section 2.2.

    Parameters
    ----------
    maps : sequence of int
        Rows of each square feature map.
    scales : sequence of float
        Side of each map's squares as a fraction of the image's; one more for the last mean.
    ratios : sequence of sequences of float
        Ratios of the boxes of each map.
    steps : sequence of float, optional
        Distance between cells as a fraction of the image; by default 1 / rows of the map.

    Raises
    ------
    SettingsError
        When the lengths of these do not match.

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
        """Number of boxes per cell of each map."""
        return tuple(2 + 2 * len(ratios) for ratios in self.ratios)

    @cached_property
    def array(self) -> Array:
        """Centre x and y, width and height as fractions of the image, float32 (P, 4).

        Ordered by map, row, column and shape as in torchvision; sides are at most 1.
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
        """Return the boxes; the features are ignored."""
        return Tensor(self.array)


@dataclass(frozen=True)
class BoxTargets:
    """Function for :meth:`SampleSet.map`: columns ``boxes`` and ``labels`` become ``y``.

    Apply it after all transforms of boxes and :class:`daskdl.data.image.NormalizeBoxes`.

    Parameters
    ----------
    most : int
        Largest number of boxes in an image; further ones are dropped.
    """

    most: int = 32

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return the batch with y float32 (N, most, 5) in place of boxes and labels.

        ``y[..., :4]`` are left, top, right and bottom edge as fractions of the image, ``y[..., 4]``
        is the label, -1 after an image's last box.
        """
        missing = {"boxes", "labels"} - batch.keys()
        if missing:
            raise ShapeError(
                f"BoxTargets: expected columns boxes and labels, found {sorted(batch)}"
                "; give samples with boxes (k, 4) and labels (k,)"
            )
        rest = {key: value for key, value in batch.items() if key not in ("boxes", "labels")}
        boxes, labels = (_ragged(batch[name]) for name in ("boxes", "labels"))
        y = np.full((len(boxes), self.most, 5), -1, np.float32)
        y[..., :4] = boxes.padded(self.most) if boxes.values.size else 0
        y[..., 4] = labels.padded(self.most, -1) if labels.values.size else -1
        return {**rest, "y": y}


def _ragged(column: Any) -> Ragged:
    if isinstance(column, np.ndarray) and column.dtype != object:
        return Ragged.from_array(column)
    return column if isinstance(column, Ragged) else Ragged.of(list(column))


def split_targets(name: str, y: Any) -> tuple[Array, Array]:
    """Split y (N, most, 5) into boxes (N, most, 4) and labels int64 (N, most)."""
    y = np.asarray(y)
    if y.ndim != 3 or y.shape[2] != 5:
        raise ShapeError(
            f"{name}: expected y (N, most, 5), edges and label of each box, found {y.shape}"
            "; SampleSet.map(BoxTargets()) makes it of boxes and labels"
        )
    return y[..., :4], y[..., 4].astype(np.int64)


class MultiBoxLoss(Loss):
    """The loss of SSD over classes and offsets of prior boxes.

    Parameters
    ----------
    priors : PriorBoxes
    overlap : float
        Least intersection over union at which a prior matches a target box.
    ratio : float
        Number of unmatched priors per matched one; those with the largest loss count.

    Examples
    --------
    >>> from daskdl.models import PriorBoxes
    >>> priors = PriorBoxes([2, 1], [0.3, 0.6, 0.9], [[2], []])
    >>> n = len(priors.array)
    >>> targets = BoxTargets(most=1)({"boxes": [[[0.0, 0.0, 0.5, 0.5]]], "labels": [[0]]})["y"]
    >>> offsets, logits = np.zeros((1, n, 4), np.float32), np.zeros((1, n, 3), np.float32)
    >>> float(MultiBoxLoss(priors)((offsets, logits), targets)) > 0
    True
    """

    def __init__(self, priors: PriorBoxes, overlap: float = 0.5, ratio: float = 3.0) -> None:
        self.priors, self.overlap, self.ratio = priors, overlap, ratio

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare offsets (N, P, 4) and logits (N, P, classes + 1) with y (N, most, 5)."""
        offsets, logits = parts(self, prediction, 2)
        boxes, labels = split_targets("MultiBoxLoss", target)
        most = int(labels.max(initial=-1))
        if most >= logits.shape[-1] - 1:
            raise ShapeError(
                f"MultiBoxLoss: expected labels from 0 to {logits.shape[-1] - 2}, found {most}"
                "; count classes from 0, or give the model more classes"
            )
        classes, wanted = match(self.priors.array, boxes, labels, self.overlap)
        result: Tensor = ops.multibox(
            offsets, logits, classes, wanted.astype(offsets.dtype, copy=False),
            ratio=self.ratio, sample_weight=sample_weight,
        )  # fmt: skip
        return result
