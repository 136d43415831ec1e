"""Boxes of detectors: matching of priors with targets, hard negatives, non-maximum suppression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import ShapeError
from daskdl.kernels.runtime.jit import fastjit, jit
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]

#: Factors of the offsets of centres and of the logarithms of sizes, as in SSD.
CENTRE, SIZE = 10.0, 5.0
#: Least images of a thread.
FEW = 2

#: Kept boxes that are compared with a box before a branch on whether one overlaps it.
CHUNK = 64


def match(
    priors: Array, boxes: Array, labels: NDArray[np.int64], overlap: float
) -> tuple[NDArray[np.int64], Array]:
    """Return the class that each prior has to find, and the offsets to its box.

    A prior finds the box that it overlaps most, if at least by ``overlap``; but each box is found
    by the prior that overlaps it most, even if this prior overlaps another box more. W. Liu et al.,
    SSD: Single Shot MultiBox Detector, arXiv 1512.02325, section 2.2.

    Priors (P, 4) are centre x and y, width and height; boxes (N, most, 4) are left, top, right and
    bottom edges in the same unit; labels (N, most) are classes from 0, negative for no box. Classes
    (N, P) are the label + 1, or 0 if there is nothing to find; offsets are float32 (N, P, 4).
    """
    shape = len(boxes), len(priors)
    classes, offsets = np.zeros(shape, np.int64), np.zeros((*shape, 4), np.float32)
    over_range(
        _match, len(boxes), FEW, np.ascontiguousarray(priors, np.float64),
        np.ascontiguousarray(boxes, np.float64), np.ascontiguousarray(labels, np.int64),
        float(overlap), classes, offsets,
    )  # fmt: skip
    return classes, offsets


def decoded(offsets: Array, priors: Array) -> Array:
    """Return the edges (..., P, 4) of boxes from offsets (..., P, 4) and priors (P, 4)."""
    centres = priors[:, :2] + offsets[..., :2] * (priors[:, 2:] / np.float32(CENTRE))
    # as in torchvision, a size is at most 62.5 times the prior's
    most = np.float32(np.log(1000 / 16))
    half = np.exp(np.minimum(offsets[..., 2:] / np.float32(SIZE), most)) * (priors[:, 2:] / 2)
    return np.concatenate([centres - half, centres + half], -1)


@jit
def _match(priors, boxes, labels, overlap, classes, offsets, which, first, stop):
    n, most = priors.shape[0], boxes.shape[1]
    best, box_of = np.empty(n, np.float64), np.empty(n, np.int64)
    for image in range(first, stop):
        best[:] = 0
        box_of[:] = -1
        owners, owned = np.full(most, -1, np.int64), np.full(most, -1.0, np.float64)
        for b in range(most):
            if labels[image, b] < 0:
                continue
            left, top, right, bottom = boxes[image, b]
            area = (right - left) * (bottom - top)
            for p in range(n):
                x, y, w, h = priors[p]
                width = min(right, x + w / 2) - max(left, x - w / 2)
                height = min(bottom, y + h / 2) - max(top, y - h / 2)
                common = max(width, 0.0) * max(height, 0.0)
                share = common / (area + w * h - common)
                if share > best[p]:
                    best[p] = share
                    if share >= overlap:
                        box_of[p] = b
                if share > owned[b]:
                    owned[b] = share
                    owners[b] = p
        for b in range(most):
            if owners[b] >= 0:
                box_of[owners[b]] = b
        for p in range(n):
            b = box_of[p]
            if b < 0:
                continue
            left, top, right, bottom = boxes[image, b]
            x, y, w, h = priors[p]
            classes[image, p] = labels[image, b] + 1
            offsets[image, p, 0] = CENTRE * ((left + right) / 2 - x) / w
            offsets[image, p, 1] = CENTRE * ((top + bottom) / 2 - y) / h
            offsets[image, p, 2] = SIZE * np.log(max(right - left, 1e-9) / w)
            offsets[image, p, 3] = SIZE * np.log(max(bottom - top, 1e-9) / h)


def hard_negatives(losses: Array, positive: NDArray[np.bool_], ratio: float) -> NDArray[np.bool_]:
    """Return a mask (N, P) of each image's negatives with the largest losses (N, P).

    There are ``ratio`` for each positive; an image without a positive has as many as one with one.
    Of equal losses at the border, the first count.
    """
    chosen = np.zeros(positive.shape, bool)
    for of_image, values, taken in zip(positive, losses, chosen, strict=True):
        count = int(ratio * max(int(of_image.sum()), 1))
        negatives = np.flatnonzero(~of_image)
        if count >= len(negatives):
            taken[negatives] = True
        elif count:
            losses_of = values[negatives]
            border = np.partition(losses_of, len(losses_of) - count)[len(losses_of) - count]
            above = np.flatnonzero(losses_of > border)
            at = np.flatnonzero(losses_of == border)[: count - len(above)]
            taken[negatives[above]] = taken[negatives[at]] = True
    return chosen


def nms(boxes: Array, scores: Array, overlap: float, most: int | None = None) -> NDArray[np.int64]:
    """Return the numbers (kept,) of the boxes to keep, the highest score first.

    Boxes (n, 4) are float32 left, top, right and bottom edges. They are taken from the highest
    score (n,) to the lowest, NaN last, equal scores in their order. A box is kept unless its
    intersection over union with a kept box is above ``overlap``, up to ``most`` boxes. A ShapeError
    is raised if boxes and scores do not fit together.
    """
    boxes, scores = np.asarray(boxes), np.asarray(scores)
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise ShapeError(
            f"nms: expected boxes (n, 4) and scores (n,), found {boxes.shape} and {scores.shape}"
            "; give each box as its four edges, and one score"
        )
    order = np.argsort(-scores, kind="stable")
    limit = len(order) if most is None else min(most, len(order))
    edges = np.ascontiguousarray(boxes[order].T, np.float32)
    kept = np.empty(limit, np.int64)
    count = _keep(edges, np.float32(overlap), kept)
    return order[kept[:count]]


@fastjit
def _keep(edges, overlap, kept):
    """Write the places of the boxes to keep, from edges (4, n) in order; return their number."""
    size, none, far = kept.size + CHUNK, np.float32(0), np.float32(np.inf)
    # after the last kept box, boxes that overlap nothing fill the chunk
    left, top = np.full(size, far), np.full(size, far)
    right, bottom = np.full(size, -far), np.full(size, -far)
    areas, count = np.zeros(size, np.float32), 0
    for i in range(edges.shape[1]):
        if count == kept.size:
            break
        a, b, c, d = edges[0, i], edges[1, i], edges[2, i], edges[3, i]
        area, free = max(c - a, none) * max(d - b, none), True
        for start in range(0, count, CHUNK):
            hits = np.int32(0)
            # comparisons that ignore NaN and an unsigned index let this loop vectorise
            for k in range(np.uintp(start), np.uintp(start + CHUNK)):
                x, y, r, u = left[k], top[k], right[k], bottom[k]
                width = (r if r < c else c) - (x if x > a else a)
                height = (u if u < d else d) - (y if y > b else b)
                common = (width if width > none else none) * (height if height > none else none)
                hits |= np.int32(common > overlap * (area + areas[k] - common))
            if hits:
                free = False
                break
        if free:
            left[count], top[count], right[count], bottom[count] = a, b, c, d
            areas[count], kept[count] = area, i
            count += 1
    return count
