"""Detections from a single-shot detector's offsets and logits, and their metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.kernels.detection import decoded, nms
from daskdl.kernels.losses.softmax import softmax
from daskdl.metrics.detection import MeanAveragePrecision
from daskdl.metrics.metric import Statistics
from daskdl.models.multibox import split_targets
from daskdl.tensor import Array

#: Objects of one picture: boxes (k, 4), scores (k,), labels (k,).
Detection = dict[str, Array]


def detections(
    offsets: Array,
    logits: Array,
    priors: Array,
    *,
    least: float = 0.01,
    overlap: float = 0.45,
    candidates: int = 400,
    most: int = 200,
) -> list[Detection]:
    """Return the objects of each picture, highest scores first.

    Parameters
    ----------
    offsets : float32 (N, P, 4)
    logits : float32 (N, P, classes + 1)
    priors : float32 (P, 4)
        Centre x and y, width and height.
    least : float
        Only scores above it count.
    overlap : float
        If two boxes of a class overlap by more, the one with the lower score is left out.
    candidates : int
        Number of boxes per class before suppression, by the highest scores.
    most : int
        Largest number of objects in a picture.

    Returns
    -------
    list of dict
        ``boxes`` float32 (k, 4), left, top, right and bottom edge as fractions of the picture, from
        0 to 1; ``scores`` float32 (k,); ``labels`` int64 (k,) from 0.
    """
    chances = softmax(np.ascontiguousarray(logits, np.float32))
    edges = np.clip(decoded(np.asarray(offsets, np.float32), priors), 0, 1)
    of_pictures = []
    for boxes, scores in zip(edges, chances, strict=True):
        chosen = []
        for label, of_label in enumerate(scores.T[1:]):
            which = np.flatnonzero(of_label > least)
            if len(which) > candidates:
                which = which[np.argsort(-of_label[which], kind="stable")[:candidates]]
            which = which[nms(boxes[which], of_label[which], overlap, most)]
            labels = np.full(len(which), label, np.int64)
            chosen.append((boxes[which], of_label[which], labels))
        together = [np.concatenate(parts) for parts in zip(*chosen, strict=True)]
        order = np.argsort(-together[1], kind="stable")[:most]
        names = "boxes", "scores", "labels"
        of_pictures.append({n: part[order] for n, part in zip(names, together, strict=True)})
    return of_pictures


@dataclass(frozen=True)
class Detections(MeanAveragePrecision):
    """Mean average precision of a single-shot detector, from its offsets and logits.

    Parameters
    ----------
    classes, style, overlaps, most :
        As in :class:`~daskdl.metrics.MeanAveragePrecision`.
    priors : tuple of (x, y, width, height)
    least, suppressed : float
        ``least`` and ``overlap`` of :func:`detections`.
    """

    priors: tuple[tuple[float, ...], ...] = ()
    least: float = 0.01
    suppressed: float = 0.45

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Compare offsets (N, P, 4) and logits (N, P, classes + 1) with y (N, most, 5)."""
        if not isinstance(prediction, tuple) or len(prediction) != 2:
            raise ShapeError(
                f"Detections: expected offsets and logits, found {type(prediction).__name__}"
                "; give what an SSD returns"
            )
        detected = detections(
            *prediction, np.asarray(self.priors, np.float32), least=self.least,
            overlap=self.suppressed, most=self.most,
        )  # fmt: skip
        boxes, labels = split_targets("Detections", target)
        wanted = [
            {"boxes": edges[labels_of >= 0], "labels": labels_of[labels_of >= 0]}
            for edges, labels_of in zip(boxes, labels, strict=True)
        ]
        return super().statistics(detected, wanted, sample_weight)
