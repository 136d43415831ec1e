"""Priors find what SSD's two rules say, and their offsets lead to it."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data.image.boxes import iou
from daskdl.kernels.detection.matching import decoded, match
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


def plain(boxes, labels, overlap):
    """Both rules of section 2.2, for one image: the classes and the box of each prior."""
    real = np.flatnonzero(labels >= 0)
    found = np.full(len(PRIORS), -1)
    if len(real):
        overlaps = iou(edges(PRIORS).astype(float), boxes[real].astype(float))
        enough = overlaps.max(1) >= overlap
        found[enough] = real[overlaps.argmax(1)[enough]]
        for k, b in enumerate(real):
            found[overlaps[:, k].argmax()] = b
    return np.where(found >= 0, labels[found] + 1, 0), found


@pytest.mark.parametrize("threads", [1, 2])
def test_rules_of_the_paper(threads):
    boxes, labels = drawn(8, 5)
    labels[3] = -1  # an image without objects
    with thread_budget(threads):
        classes, offsets = match(PRIORS, boxes, labels, 0.5)
    for i in range(8):
        expected, found = plain(boxes[i], labels[i], 0.5)
        np.testing.assert_array_equal(classes[i], expected)
        some = found >= 0
        reached = decoded(offsets[i], PRIORS)[some]
        np.testing.assert_allclose(reached, boxes[i][found[some]], atol=1e-6)
        assert not offsets[i][~some].any()
    assert not classes[3].any()


def test_a_box_is_found_though_no_prior_overlaps_it_enough():
    boxes = np.float32([[[0.01, 0.01, 0.03, 0.03]]])
    classes, _ = match(PRIORS, boxes, np.array([[2]]), 0.5)
    assert (classes > 0).sum() == 1
    assert classes.max() == 3


def test_sizes_that_were_predicted_far_too_large_stay_finite():
    assert np.isfinite(decoded(np.full((len(PRIORS), 4), 1e6, np.float32), PRIORS)).all()
