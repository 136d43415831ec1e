"""Arrays of pixels: stacked where they can be, checked, and masks."""

from __future__ import annotations

import numpy as np

from daskdl.data.image.pixels import nearest, room, rows_contiguous, stacked_images, warped
from daskdl.kernels.pixels.resample import COLUMNS, HEIGHT, MIRRORED, ROWS, WIDTH, H, W
from tests.daskdl.data.image.pictures import photo


def test_images_of_one_size_become_one_array():
    assert stacked_images([photo(), photo()]).shape == (2, 75, 100, 3)
    assert stacked_images([photo()]).shape == (1, 75, 100, 3)
    mixed = stacked_images([photo(), photo()[:5]])
    assert mixed.shape == (2,)
    assert mixed[1].shape == (5, 100, 3)
    assert stacked_images([]).shape == (0,)


def test_there_is_room_for_each_size():
    whole = room(np.array([[4, 5], [4, 5]]), 3, np.dtype(np.uint8))
    assert whole.shape == (2, 4, 5, 3)
    each = room(np.array([[4, 5], [5, 4]]), 1, np.dtype(np.float32))
    assert [a.shape for a in each] == [(4, 5, 1), (5, 4, 1)]


def test_only_rows_need_to_be_contiguous():
    window = photo()[3:9, 4:20]
    assert rows_contiguous(window) is window
    for other in (photo()[:, ::-1], photo()[..., ::-1], photo()[:, ::2]):
        assert rows_contiguous(other) is not other
        np.testing.assert_array_equal(rows_contiguous(other), other)


def test_masks_take_the_nearest_value():
    mask = np.array([[1, 2], [3, 4]], np.int16)
    g = np.zeros(12, np.int64)
    g[[HEIGHT, WIDTH]], g[[ROWS, COLUMNS]], g[[H, W]], g[MIRRORED] = 2, 4, 4, 1
    expected = np.kron(mask, np.ones((2, 2), int))[:, ::-1]
    np.testing.assert_array_equal(nearest(mask, g), expected)
    layers = nearest(np.stack([mask, mask], 2), g)
    np.testing.assert_array_equal(layers[..., 1], expected)


def test_masks_are_nothing_where_a_map_leads_outside():
    mask = np.array([[1, 2], [3, 4]], np.uint8)
    turned = warped(mask, np.array([[1.0, 0, -1], [0, 1, 0]]), np.array([2, 3]))
    np.testing.assert_array_equal(turned, [[0, 1, 2], [0, 3, 4]])
