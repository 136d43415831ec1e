"""Kernels of detectors: boxes are matched, negatives mined, overlaps suppressed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.data.image.boxes import iou
from daskdl.errors import ShapeError
from daskdl.kernels.detection import decoded, hard_negatives, match, nms
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.models import PriorBoxes

PRIORS = PriorBoxes([6, 3, 1], [0.2, 0.45, 0.8, 1.0], [[2], [2, 3], []]).array


def drawn(images, most, seed=0):
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 0.6, (images, most, 2))
    boxes = np.concatenate([low, low + rng.uniform(0.05, 0.4, (images, most, 2))], -1)
    labels = rng.integers(-1, 3, (images, most))
    return boxes.astype(np.float32), labels


def edges(priors):
    half = priors[:, 2:] / 2
    return np.concatenate([priors[:, :2] - half, priors[:, :2] + half], 1)


def match_image(boxes, labels, overlap):
    """Return the class and the box of each prior in an image by both rules of section 2.2."""
    real = np.flatnonzero(labels >= 0)
    matched = np.full(len(PRIORS), -1)
    if len(real):
        overlaps = iou(edges(PRIORS).astype(float), boxes[real].astype(float))
        enough = overlaps.max(1) >= overlap
        matched[enough] = real[overlaps.argmax(1)[enough]]
        for k, b in enumerate(real):
            matched[overlaps[:, k].argmax()] = b
    return np.where(matched >= 0, labels[matched] + 1, 0), matched


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_match_follows_the_rules_of_the_paper(threads):
    boxes, labels = drawn(8, 5)
    labels[3] = -1  # an image without positives
    with thread_budget(threads):
        classes, offsets = match(PRIORS, boxes, labels, 0.5)
    for i in range(8):
        expected, matched = match_image(boxes[i], labels[i], 0.5)
        np.testing.assert_array_equal(classes[i], expected)
        some = matched >= 0
        reached = decoded(offsets[i], PRIORS)[some]
        np.testing.assert_allclose(reached, boxes[i][matched[some]], atol=1e-6)
        assert not offsets[i][~some].any()
    assert not classes[3].any()


@pytest.mark.slow
def test_a_box_is_found_though_no_prior_overlaps_it_enough():
    boxes = np.float32([[[0.01, 0.01, 0.03, 0.03]]])
    classes, _ = match(PRIORS, boxes, np.array([[2]]), 0.5)
    assert (classes > 0).sum() == 1
    assert classes.max() == 3


def test_sizes_that_were_predicted_far_too_large_stay_finite():
    assert np.isfinite(decoded(np.full((len(PRIORS), 4), 1e6, np.float32), PRIORS)).all()


@given(seed=st.integers(0, 99), ratio=st.sampled_from([0.0, 1.0, 3.0]), ties=st.booleans())
def test_the_most_wrong_negatives(seed, ratio, ties):
    rng = np.random.default_rng(seed)
    losses = rng.integers(0, 4, (3, 40)).astype(float) if ties else rng.random((3, 40))
    positive = rng.random((3, 40)) < rng.choice([0, 0.1, 0.5, 1], (3, 1))
    chosen = hard_negatives(losses, positive, ratio)
    assert not (chosen & positive).any()
    for loss, positives, taken in zip(losses, positive, chosen, strict=True):
        assert taken.sum() == min(int(ratio * max(positives.sum(), 1)), (~positives).sum())
        others = loss[~positives & ~taken]
        if taken.any() and others.size:
            assert loss[taken].min() >= others.max()


def greedy_nms(boxes, scores, overlap, most=None):
    keep = []
    for i in sorted(range(len(boxes)), key=lambda i: (-scores[i], i)):
        if most is not None and len(keep) >= most:
            break
        if not keep or (iou(boxes[i : i + 1], boxes[keep]) <= overlap).all():
            keep.append(i)
    return keep


@pytest.mark.slow
@given(
    n=st.integers(0, 200),
    seed=st.integers(0, 99),
    overlap=st.sampled_from([0.0, 0.3, 0.45, 0.9, 1.0]),
    most=st.none() | st.integers(0, 150),
    ties=st.booleans(),
)
def test_nms_agrees_with_a_greedy_loop(n, seed, overlap, most, ties):
    rng = np.random.default_rng(seed)
    corners, sides = rng.random((n, 2)), rng.uniform(0, 0.3, (n, 2))
    sides[rng.random(n) < 0.1] = 0  # boxes without an area
    boxes = np.concatenate([corners, corners + sides], 1).astype(np.float32)
    scores = rng.integers(0, 5, n) / 4 if ties else rng.random(n)
    assert nms(boxes, scores, overlap, most).tolist() == greedy_nms(boxes, scores, overlap, most)


@pytest.mark.slow
def test_of_equal_boxes_one_is_kept_and_an_overlap_of_1_keeps_all():
    boxes = np.tile(np.float32([0.1, 0.2, 0.6, 0.9]), (70, 1))
    scores = np.linspace(0, 1, 70)
    assert nms(boxes, scores, 0.99).tolist() == [69]
    assert len(nms(boxes, scores, 1.0)) == 70


def test_boxes_and_scores_have_to_fit():
    with pytest.raises(ShapeError, match=r"nms: expected boxes \(n, 4\) .* \(3, 4\) and \(2,\)"):
        nms(np.zeros((3, 4)), np.zeros(2), 0.5)
