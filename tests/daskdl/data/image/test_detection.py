"""Crops for detectors keep what they promise; boxes become fractions."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data.image import NormalizeBoxes, RandomIoUCrop, Resize
from daskdl.data.image.boxes import iou
from daskdl.errors import SettingsError, ShapeError

#: Pixels that know where they are: row and column of each.
PLACES = np.stack([*np.indices((100, 120)), np.zeros((100, 120))], -1).astype(np.uint8)
BOXES = np.array([[20, 30, 70, 80], [90, 10, 110, 30], [5, 5, 15, 15]], np.float32)


def cropped(crop, n=60, seed=0):
    batch = {"x": np.repeat(PLACES[None], n, 0), "boxes": [BOXES] * n, "labels": [[1, 2, 3]] * n}
    return crop(batch, np.random.default_rng(seed))


@pytest.mark.parametrize("overlap", [0.0, 0.3, 0.6])
def test_some_box_overlaps_the_window_enough(overlap):
    result = cropped(RandomIoUCrop([overlap], whole=False, scale=(0.3, 0.9)))
    assert len({image.shape for image in result["x"]}) > 20
    whole = 0
    for image, boxes, labels in zip(result["x"], result["boxes"], result["labels"], strict=True):
        if image.shape[:2] == (100, 120):  # no window that was drawn fits
            whole += 1
            continue
        (top, left, _), (bottom, right, _) = image[0, 0].astype(int), image[-1, -1].astype(int) + 1
        window = np.array([[left, top, right, bottom]])
        assert 0.5 <= (right - left) / (bottom - top) <= 2
        centres = (BOXES[:, :2] + BOXES[:, 2:]) / 2
        inside = ((centres >= window[:, :2]) & (centres < window[:, 2:])).all(1)
        assert inside.any()
        np.testing.assert_array_equal(labels, np.flatnonzero(inside) + 1)
        assert iou(window, BOXES[inside]).max() >= overlap
        clipped = np.clip(BOXES[inside], [left, top] * 2, [right, bottom] * 2) - [left, top] * 2
        np.testing.assert_allclose(boxes, clipped)
    assert whole < 20


def test_the_image_stays_whole_where_nothing_fits_or_it_is_drawn():
    never = cropped(RandomIoUCrop([0.9], whole=False), 4)
    assert never["x"].shape == (4, 100, 120, 3)
    assert len(never["boxes"].values) == 12
    sometimes = cropped(RandomIoUCrop([0.0], whole=True))
    whole = [image.shape[:2] == (100, 120) for image in sometimes["x"]]
    assert 15 < sum(whole) < 45
    none = {"x": PLACES[None], "boxes": [[]]}
    assert RandomIoUCrop()(none, np.random.default_rng(0))["x"].shape == (1, 100, 120, 3)


def test_boxes_become_fractions():
    result = (Resize((50, 60)) | NormalizeBoxes())({"x": PLACES[None], "boxes": [BOXES]})
    np.testing.assert_allclose(result["boxes"][0], BOXES / [120, 100, 120, 100], rtol=1e-6)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ShapeError, match="RandomIoUCrop: expected images with boxes, found none"):
        RandomIoUCrop()(PLACES, np.random.default_rng(0))
    with pytest.raises(SettingsError, match=r"RandomIoUCrop: scale: .* found \(0.5, 2\)"):
        RandomIoUCrop(scale=(0.5, 2))
    with pytest.raises(SettingsError, match="RandomIoUCrop: overlaps"):
        RandomIoUCrop([1.5])
    with pytest.raises(SettingsError, match="something to choose from"):
        RandomIoUCrop([], whole=False)
