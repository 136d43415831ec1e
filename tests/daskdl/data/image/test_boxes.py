"""Boxes of a batch move all at once, with what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_what_lies_outside_goes_with_its_label():
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


def test_what_does_not_belong_together_is_refused():
    with pytest.raises(ShapeError, match=r"Crop: boxes: expected \(k, 4\).* found \(k, 3\)"):
        Boxes([[[1, 2, 3]]], name="Crop")
    with pytest.raises(ShapeError, match=r"labels: .* image 0 has 2 boxes and 1 labels"):
        Boxes(Ragged.of(EDGES[:1]), {"labels": [[1]]})
