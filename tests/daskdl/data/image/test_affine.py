"""Affine maps agree with scikit-image's, and boxes and masks move along."""

from __future__ import annotations

import numpy as np
import pytest
import skimage.transform

from daskdl.data.image import (
    Affine,
    CenterCrop,
    FixedCrop,
    HorizontalFlip,
    RandomCrop,
    RandomResizedCrop,
    Rotate,
    VerticalFlip,
)
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.data.image.pictures import labelled, photo, photos, where


@pytest.mark.slow
def test_rotations_are_scikit_images():
    floats = photo().astype(np.float32) / 255
    exact = skimage.transform.rotate(floats, 33, order=1, mode="constant", cval=0.25)
    np.testing.assert_allclose(Rotate(33, fill=0.25)(floats), exact, atol=1e-4)


def test_all_settings_at_once_are_scikit_images():
    settings = {"degrees": -20.0, "scale": 1.3, "shear": 12.0}
    floats = photo().astype(np.float32) / 255
    ours = Affine(**settings, shift_x=0.1, shift_y=-0.2)(floats)
    # Rows count downwards, so that angles turn the other way; the shift comes after the turn.
    middle = skimage.transform.AffineTransform(translation=(-49.5, -37))
    turn = skimage.transform.AffineTransform(rotation=np.deg2rad(20), scale=(1.3, 1.3))
    lean = skimage.transform.AffineTransform([[1, np.tan(np.deg2rad(12)), 0], [0, 1, 0], [0, 0, 1]])
    back = skimage.transform.AffineTransform(translation=(49.5 + 10, 37 - 15))
    exact = skimage.transform.warp(floats, (middle + lean + turn + back).inverse, order=1)
    np.testing.assert_allclose(ours, exact, atol=1e-4)


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_quarter_turns_are_exact(turns):
    result = Rotate(90 * turns, expand=True)(photo())
    np.testing.assert_array_equal(result, np.rot90(photo(), turns))


def test_a_canvas_that_grows_shows_the_whole_image():
    batch = Rotate(30, expand=True, fill=1.0)({**labelled(), "x": np.zeros((1, 60, 80, 3), "u1")})
    height, width = batch["x"].shape[1:3]
    assert (height, width) == (92, 100)  # 80 sin 30 + 60 cos 30, 80 cos 30 + 60 sin 30
    dark = (255 - batch["x"][0, ..., 0].astype(float)).sum() / 255
    assert dark == pytest.approx(60 * 80, rel=0.002)


def test_boxes_and_masks_move_along():
    batch = Affine(scale=0.8, shear=10, shift_x=0.1, degrees=90)(labelled())
    for edges, label in zip(batch["boxes"][0], batch["labels"][0], strict=True):
        np.testing.assert_allclose(edges, where(batch["masks"][0], label), atol=1)
    gone = Affine(shift_x=0.75)(labelled())
    np.testing.assert_array_equal(gone["labels"][0], [1, 2][1:])
    np.testing.assert_allclose(gone["boxes"][0], [[65, 35, 75, 55]], atol=1e-4)


def test_each_image_has_its_own_map():
    images = np.repeat(photo()[None], 3, 0)
    turned = Rotate((-10, 10))(images, np.random.default_rng(0))
    assert (turned[0] != turned[1]).any()
    again = Rotate((-10, 10))(images, np.random.default_rng(0))
    np.testing.assert_array_equal(turned, again)
    with pytest.raises(SettingsError, match="Affine: expected a numpy Generator"):
        Rotate((-10, 10))(images)
    assert Rotate(0)(images) is images


def test_all_are_mirrored_or_none():
    np.testing.assert_array_equal(HorizontalFlip(1)(photo()), photo()[:, ::-1])
    np.testing.assert_array_equal(VerticalFlip(1)(photo()), photo()[::-1])
    np.testing.assert_array_equal(HorizontalFlip(0)(photo()), photo())
    batch = HorizontalFlip(1)(labelled())
    np.testing.assert_array_equal(batch["boxes"][0], [[30, 10, 60, 30], [65, 35, 75, 55]])


def test_some_are_mirrored():
    images = np.repeat(photos(1), 200, 0)
    result = VerticalFlip(0.25)(images, np.random.default_rng(0))
    turned = (result == images[:, ::-1]).all((1, 2, 3))
    assert ((result == images).all((1, 2, 3)) ^ turned).all()
    assert 30 < turned.sum() < 70


def test_the_middle_and_a_fixed_place():
    np.testing.assert_array_equal(CenterCrop((15, 20))(photo()), photo()[30:45, 40:60])
    np.testing.assert_array_equal(FixedCrop(10, 5, 30, 25)(photo()), photo()[5:25, 10:30])
    quarter = FixedCrop(0.5, 0, 1, 0.5, fractions=True)
    np.testing.assert_array_equal(quarter(photo()), photo()[:38, 50:])
    two = quarter([photo(), photo()[:60]])
    assert [image.shape for image in two] == [(38, 50, 3), (30, 50, 3)]


def test_random_crops_lie_everywhere_equally_often():
    places = np.arange(5 * 6, dtype=np.uint8).reshape(1, 5, 6, 1)
    crops = RandomCrop((4, 4))(np.repeat(places, 600, 0), np.random.default_rng(0))
    corners, counts = np.unique(crops[:, 0, 0, 0], return_counts=True)
    assert set(corners) == {0, 1, 2, 6, 7, 8}
    assert counts.min() > 70
    np.testing.assert_array_equal(crops[0, :, :, 0] - crops[0, 0, 0, 0], places[0, :4, :4, 0])


def test_windows_of_random_size_have_the_areas_and_aspects_asked_for():
    crop = RandomResizedCrop(8, area=(0.2, 0.6), aspect=(0.5, 2))
    sizes = np.tile([300, 400], (500, 1))
    windows = crop.windows(sizes, np.random.default_rng(0))
    top, left, rows, columns = windows.T
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert ((windows[:, :2] + windows[:, 2:]) <= sizes).all()
    free = left / np.maximum(400 - columns, 1)  # evenly from one side to the other
    np.testing.assert_allclose(np.percentile(free, [5, 50, 95]), [0.05, 0.5, 0.95], atol=0.06)
    shares, aspects = rows * columns / 120_000, columns / rows
    assert 0.199 < shares.min() < 0.21
    assert 0.58 < shares.max() < 0.601
    assert 0.49 < aspects.min() < 0.56
    assert 1.8 < aspects.max() < 2.02
    # Wide windows fit this image more often than tall ones.
    assert 0 < np.log(aspects).mean() < 0.1


def test_an_image_without_such_a_window_is_cut_in_the_middle():
    crop = RandomResizedCrop(8, area=(0.9, 1.0), aspect=(3 / 4, 4 / 3))
    (window,) = crop.windows(np.array([[30, 300]]), np.random.default_rng(0))
    np.testing.assert_array_equal(window, [0, 130, 30, 40])
    assert crop(photos(), np.random.default_rng(0)).shape == (4, 8, 8, 3)


def test_an_image_that_is_too_small_is_refused():
    for crop in (CenterCrop(76), RandomCrop(76), FixedCrop(0, 0, 101, 5)):
        with pytest.raises(ShapeError, match=rf"{type(crop).__name__}: .*image 0 of 75 x 100"):
            crop(photo(), np.random.default_rng(0))
