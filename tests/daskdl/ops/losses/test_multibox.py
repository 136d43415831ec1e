"""The multi-box loss by hand, its slopes, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import ShapeError
from daskdl.ops import losses
from tests.daskdl.lossmeans import check_slopes


def drawn(images=3, priors=30, classes=4):
    rng = np.random.default_rng(0)
    found = rng.integers(0, classes, (images, priors)) * (rng.random((images, priors)) < 0.3)
    found[1] = 0  # nothing to find
    return (
        rng.normal(size=(images, priors, 4)),
        rng.normal(size=(images, priors, classes)),
        found,
        rng.normal(size=(images, priors, 4)),
    )


def plain(offsets, logits, classes, target, ratio=3.0):
    """Equations 1 to 3 of the paper for each image."""
    values = []
    for o, x, c, t in zip(offsets, logits, classes, target, strict=True):
        chances = np.exp(x) / np.exp(x).sum(1, keepdims=True)
        wrong = -np.log(chances[np.arange(len(c)), c])
        count = (c > 0).sum()
        negatives = sorted(wrong[c == 0])[::-1][: int(ratio * max(count, 1))]
        d = np.abs(o - t)[c > 0]
        places = np.where(d < 1, d * d / 2, d - 0.5).sum()
        values.append((wrong[c > 0].sum() + sum(negatives) + places) / max(count, 1))
    return np.array(values)


def test_values_and_slopes():
    offsets, logits, classes, target = drawn()
    assert float(losses.multibox(offsets, logits, classes, target)) == pytest.approx(
        plain(offsets, logits, classes, target).mean()
    )
    check_slopes(losses.multibox, offsets, logits, constants=(classes, target))


def test_an_image_counts_as_its_weight_says():
    arrays = drawn()
    weights = np.array([2.0, 0.0, 0.5])
    expected = (plain(*arrays) * weights).mean()
    assert float(losses.multibox(*arrays, sample_weight=weights)) == pytest.approx(expected)


def test_arrays_of_other_priors_are_refused():
    offsets, logits, classes, target = drawn()
    with pytest.raises(ShapeError, match=r"multibox: expected .*\(3, 29\); match the boxes"):
        losses.multibox(offsets, logits, classes[:, 1:], target)
