"""Suppression keeps what a plain loop keeps, for boxes of any kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.data.image.boxes import iou
from daskdl.errors import ShapeError
from daskdl.kernels.detection.nms import nms


def plain(boxes, scores, overlap, most=None):
    kept = []
    for i in sorted(range(len(boxes)), key=lambda i: (-scores[i], i)):
        if most is not None and len(kept) >= most:
            break
        if not kept or (iou(boxes[i : i + 1], boxes[kept]) <= overlap).all():
            kept.append(i)
    return kept


@given(
    n=st.integers(0, 200),
    seed=st.integers(0, 99),
    overlap=st.sampled_from([0.0, 0.3, 0.45, 0.9, 1.0]),
    most=st.none() | st.integers(0, 150),
    ties=st.booleans(),
)
def test_keeps_what_a_plain_loop_keeps(n, seed, overlap, most, ties):
    rng = np.random.default_rng(seed)
    corners, sides = rng.random((n, 2)), rng.uniform(0, 0.3, (n, 2))
    sides[rng.random(n) < 0.1] = 0  # boxes without an area
    boxes = np.concatenate([corners, corners + sides], 1).astype(np.float32)
    scores = rng.integers(0, 5, n) / 4 if ties else rng.random(n)
    assert nms(boxes, scores, overlap, most).tolist() == plain(boxes, scores, overlap, most)


def test_of_equal_boxes_one_is_kept_and_an_overlap_of_1_keeps_all():
    boxes = np.tile(np.float32([0.1, 0.2, 0.6, 0.9]), (70, 1))
    scores = np.linspace(0, 1, 70)
    assert nms(boxes, scores, 0.99).tolist() == [69]
    assert len(nms(boxes, scores, 1.0)) == 70


def test_boxes_and_scores_have_to_fit():
    with pytest.raises(ShapeError, match=r"nms: expected boxes \(n, 4\) .* \(3, 4\) and \(2,\)"):
        nms(np.zeros((3, 4)), np.zeros(2), 0.5)
