"""Non-maximum suppression: of boxes that overlap, keep the one with the highest score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import ShapeError
from daskdl.kernels.runtime.jit import fastjit

Array = NDArray[Any]

#: Kept boxes that are compared with a box before a branch on whether one overlaps it.
CHUNK = 64


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
