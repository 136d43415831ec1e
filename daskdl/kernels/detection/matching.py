"""Matching: the box that each prior has to find, and the offsets from the prior to the box."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]

#: Factors of the offsets of centres and of the logarithms of sizes, as in SSD.
CENTRE, SIZE = 10.0, 5.0
#: Least images of a thread.
FEW = 2


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
