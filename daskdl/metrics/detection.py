"""Mean average precision of detected boxes, in the styles of COCO and Pascal VOC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.metrics.metric import Array, Metric, Statistics

#: COCO's thresholds of overlap for a correct detection.
COCO = tuple(round(0.5 + 0.05 * k, 2) for k in range(10))
STYLES = ("coco", "voc2007", "voc2010")


@dataclass(frozen=True)
class MeanAveragePrecision(Metric):
    """Mean over classes and overlaps of the average precision of detected boxes.

    Detections of equal score count together, so that the value does not depend on the order of
    images. Classes without target boxes are left out.

    T.-Y. Lin et al., Microsoft COCO, arXiv 1405.0312; M. Everingham et al., The Pascal Visual
    Object Classes Challenge, IJCV 88 (2010).

    Parameters
    ----------
    classes : int
    style : "coco", "voc2007" or "voc2010"
        COCO: precision at 101 recalls; a detection matches the free box with the largest overlap;
        up to ``most`` detections per image and class count. VOC: a detection matches the box with
        the largest overlap, and is wrong if that is taken; precision at 11 recalls (2007) or the
        whole area under its hull (2010).
    overlaps : tuple of float, optional
        Least intersections over unions of a correct detection. COCO: 0.5, 0.55, ... 0.95; VOC: 0.5.
    most : int
        Detections per image and class, for COCO's style only.
    """

    classes: int
    style: str = "coco"
    overlaps: tuple[float, ...] | None = None
    most: int = 100

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise SettingsError(
                f"MeanAveragePrecision: expected one of the styles {', '.join(STYLES)}, found "
                f"{self.style!r}"
            )

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The thresholds of overlap."""
        return self.overlaps or (COCO if self.style == "coco" else (0.5,))

    def joined(self) -> frozenset[str]:
        """Return the names of statistics with an entry per detection."""
        return frozenset({"scores", "labels", "right", "counted"})

    def statistics(
        self,
        prediction: Sequence[Mapping[str, Any]],
        target: Sequence[Mapping[str, Any]],
        sample_weight: Any = None,
    ) -> Statistics:
        """Compare detections with target boxes.

        Parameters
        ----------
        prediction : sequence of dict, one per image
            ``boxes`` (n, 4), left, top, right and bottom edge; ``scores`` (n,); ``labels`` (n,).
        target : sequence of dict, one per image
            ``boxes`` (m, 4); ``labels`` (m,); optionally ``ignore`` (m,) bool for crowds (COCO) or
            difficult boxes (VOC): detections of these are neither right nor wrong.

        Raises
        ------
        ShapeError
            When the numbers of images differ, or the shapes of an image's arrays do not match.
        """
        if sample_weight is not None:
            raise SettingsError("MeanAveragePrecision: expected images without sample_weight")
        if len(prediction) != len(target):
            raise ShapeError(
                f"MeanAveragePrecision: expected a target for each of {len(prediction)} images, "
                f"found {len(target)}"
                "; give an empty one for images without boxes"
            )
        n = len(self.thresholds)
        judged: list[tuple[Array, Array, Array, Array]] = [
            (np.zeros(0), np.zeros(0, np.int64), np.zeros((0, n), bool), np.zeros((0, n), bool))
        ]
        boxes = np.zeros(self.classes, np.int64)
        for image, (detected, wanted) in enumerate(zip(prediction, target, strict=True)):
            b, labels, scores = self._arrays(image, detected, "scores")
            t, classes, ignore = self._arrays(image, wanted, "ignore")
            boxes += np.bincount(classes[~ignore], minlength=self.classes)
            for label in np.unique(labels):
                mine, theirs = labels == label, classes == label
                order = np.argsort(-scores[mine], kind="stable")
                if self.style == "coco":
                    order = order[: self.most]
                right, counted = self._matches(b[mine][order], t[theirs], ignore[theirs])
                labels_of = np.full(len(order), label, np.int64)
                judged.append((scores[mine][order], labels_of, right, counted))
        names = ("scores", "labels", "right", "counted")
        arrays = (np.concatenate(part) for part in zip(*judged, strict=True))
        return {**dict(zip(names, arrays, strict=True)), "boxes": boxes}

    def _arrays(
        self, image: int, entry: Mapping[str, Any], third: str
    ) -> tuple[Array, Array, Array]:
        """Return boxes, labels, and ``third``: scores or the boxes to ignore."""
        name = f"MeanAveragePrecision: image {image}"
        missing = {"boxes", "labels", *(["scores"] if third == "scores" else [])} - entry.keys()
        if missing:
            raise ShapeError(f"{name}: expected {sorted(missing)}, found {sorted(entry)}")
        boxes = np.asarray(entry["boxes"], np.float64).reshape(-1, 4)
        labels = np.asarray(entry["labels"])
        n = len(boxes)
        last = np.asarray(entry.get(third, np.zeros(n, bool)))
        if labels.shape != (n,) or last.shape != (n,):
            raise ShapeError(
                f"{name}: expected labels and {third} of {n} boxes, found shapes {labels.shape} "
                f"and {last.shape}"
            )
        wrong = labels[(labels < 0) | (labels >= self.classes)]
        if wrong.size:
            raise ShapeError(
                f"{name}: expected labels from 0 to {self.classes - 1}, found {wrong[0]}"
                "; count classes from 0"
            )
        kind = np.float64 if third == "scores" else bool
        return boxes, labels.astype(np.int64), last.astype(kind)

    def _matches(self, detected: Array, boxes: Array, ignore: Array) -> tuple[Array, Array]:
        """Return for each detection of an image and class whether it is right, and counts."""
        shape = len(detected), len(self.thresholds)
        right, counted = np.zeros(shape, bool), np.ones(shape, bool)
        if not len(boxes):
            return right, counted
        overlaps = _overlaps(detected, boxes, ignore & (self.style == "coco"))
        free = np.ones((len(self.thresholds), len(boxes)), bool)
        every = np.arange(len(self.thresholds))
        least = np.asarray(self.thresholds)
        for d, row in enumerate(overlaps):
            if self.style == "coco":
                # Prefer a free box that counts; boxes to ignore match any number of detections.
                open_ = free & ~ignore & (row >= least[:, None])
                instead = ignore & (row >= least[:, None])
                some = open_.any(1)
                best = np.where(open_, row, -1).argmax(1)
                right[d] = some
                counted[d] = some | ~instead.any(1)
                free[every[some], best[some]] = False
            else:
                best_ = int(row.argmax())
                enough = row[best_] >= least
                right[d] = enough & free[:, best_] & (not ignore[best_])
                counted[d] = ~(enough & bool(ignore[best_]))
                free[enough, best_] = False
        return right, counted

    def value(self, statistics: Mapping[str, Array]) -> float:
        """Return the mean average precision; NaN without target boxes."""
        per_class = self.per_class(statistics)
        known = per_class[~np.isnan(per_class).any(1)]
        return float(known.mean()) if known.size else float("nan")

    def per_class(self, statistics: Mapping[str, Array]) -> Array:
        """Return the average precisions (classes, overlaps); NaN for classes without boxes."""
        result = np.full((self.classes, len(self.thresholds)), np.nan)
        for label, boxes in enumerate(statistics["boxes"]):
            if not boxes:
                continue
            mine = statistics["labels"] == label
            scores = statistics["scores"][mine]
            order = np.argsort(-scores, kind="stable")
            last = np.append(scores[order][1:] != scores[order][:-1], True)[: len(scores)]
            right = statistics["right"][mine][order]
            false = statistics["counted"][mine][order] & ~right
            correct, wrong = (np.cumsum(x, 0)[last] for x in (right, false))
            for k in range(len(self.thresholds)):
                result[label, k] = self._average(correct[:, k], wrong[:, k], int(boxes))
        return result

    def _average(self, correct: Array, wrong: Array, boxes: int) -> float:
        """Return the average precision from counts at each distinct score, highest first."""
        some = correct + wrong > 0
        correct, wrong = correct[some], wrong[some]
        recall, precision = correct / boxes, correct / (correct + wrong)
        hull = np.maximum.accumulate(precision[::-1])[::-1]
        if self.style == "voc2010":
            return float((np.diff(recall, prepend=0) * hull).sum())
        points = np.linspace(0, 1, 101 if self.style == "coco" else 11)
        at = np.searchsorted(recall, points, "left")
        return float(np.append(hull, 0.0)[at].mean())


def _overlaps(detected: Array, boxes: Array, crowd: Array) -> Array:
    """Return intersections over unions (detected, boxes); for crowds over the detection's area."""
    low = np.maximum(detected[:, None, :2], boxes[None, :, :2])
    high = np.minimum(detected[:, None, 2:], boxes[None, :, 2:])
    common = np.prod(np.maximum(high - low, 0), -1)
    areas = [np.prod(x[:, 2:] - x[:, :2], -1) for x in (detected, boxes)]
    union = areas[0][:, None] + np.where(crowd, 0, areas[1]) - np.where(crowd, 0, common)
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)
