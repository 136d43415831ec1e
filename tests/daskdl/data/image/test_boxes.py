"""Boxes of a batch move all at once, with their labels."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data.image import NormalizeBoxes, RandomIoUCrop, Resize
from daskdl.data.image.boxes import Boxes, area, centred, iou
from daskdl.data.ragged import Ragged
from daskdl.errors import ShapeError

EDGES = [[[0, 0, 4, 2], [1, 1, 3, 3]], [], [[5, 5, 9, 8]]]


def boxes() -> Boxes:
    return Boxes(EDGES, {"labels": [[1, 2], [], [3]]})


def test_boxes_know_their_images():
    some = boxes()
    assert len(some) == 3
    np.testing.assert_array_equal(some.of(0), EDGES[0])
    assert some.of(1).shape == (0, 4)
    columns = some.ragged()
    np.testing.assert_array_equal(columns["labels"][2], [3])
    assert columns["boxes"].dtype == np.float32
    assert Boxes(columns["boxes"]).edges.shape == (3, 4)


def test_images_without_any_boxes_are_fine():
    none = Boxes([[], []], {"labels": [[], []]})
    none.scale(np.ones((2, 2)))
    none.clip(np.array([[0, 0, 4, 4]] * 2))
    assert none.ragged()["boxes"].values.shape == (0, 4)
    assert len(none.ragged()["labels"]) == 2


def test_each_image_has_its_own_move():
    some = boxes()
    some.shift(np.array([[10, 20], [0, 0], [-1, 1]]))
    np.testing.assert_array_equal(some.edges[[0, 2]], [[10, 20, 14, 22], [4, 6, 8, 9]])
    some = boxes()
    some.scale(np.array([[2, 0.5], [1, 1], [1, 3]]))  # rows, columns
    np.testing.assert_array_equal(some.edges[[0, 2]], [[0, 0, 2, 4], [15, 5, 27, 8]])
    some = boxes()
    some.mirror(np.array([True, True, False]), np.array([6, 6, 6]), 1)
    np.testing.assert_array_equal(some.edges, [[2, 0, 6, 2], [3, 1, 5, 3], [5, 5, 9, 8]])
    some = boxes()
    some.mirror(np.array([False, False, True]), np.array([0, 0, 10]), 0)
    np.testing.assert_array_equal(some.edges[2], [5, 2, 9, 5])


def test_boxes_outside_are_dropped_with_their_labels():
    some = boxes()
    some.cut(np.array([[3, 0, 9, 9], [0, 0, 1, 1], [0, 0, 9, 9]]))
    np.testing.assert_array_equal(some.edges, [[0, 0, 1, 2], [5, 5, 9, 8]])
    np.testing.assert_array_equal(some.columns["labels"], [1, 3])
    some = boxes()
    some.cut(np.array([[0, 0, 2, 2]] * 2 + [[8, 0, 9, 9]]), keep=centred)
    np.testing.assert_array_equal(some.columns["labels"], [])  # (2, 2) is beyond (0, 0, 2, 2)


def test_a_map_is_bounded_by_its_corners():
    some = Boxes([[[0, 0, 4, 2]]])
    some.map_affinely(np.array([[[0.0, -1, 5], [1, 0, 0]]]))  # a quarter turn
    np.testing.assert_array_equal(some.edges, [[3, 0, 5, 4]])


def test_overlaps():
    a = np.array([[0, 0, 2, 2], [0, 0, 0, 5]], float)
    b = np.array([[1, 1, 3, 3], [0, 0, 2, 2], [7, 7, 8, 8], [0, 0, 0, 5]], float)
    np.testing.assert_allclose(iou(a, b), [[1 / 7, 1, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(area(b), [4, 4, 1, 0])


def test_boxes_and_labels_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"Crop: boxes: expected \(k, 4\).* found \(k, 3\)"):
        Boxes([[[1, 2, 3]]], name="Crop")
    with pytest.raises(ShapeError, match=r"labels: .* image 0 has 2 boxes and 1 labels"):
        Boxes(Ragged.of(EDGES[:1]), {"labels": [[1]]})


#: An image whose pixels are their own rows and columns.
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


def test_images_without_boxes_are_refused():
    with pytest.raises(ShapeError, match="RandomIoUCrop: expected images with boxes, found none"):
        RandomIoUCrop()(PLACES, np.random.default_rng(0))
