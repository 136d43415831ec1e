"""Affine maps agree with scikit-image's, and boxes and masks move along."""

from __future__ import annotations

import numpy as np
import pytest
import skimage.transform

from daskdl.data.image import Affine, Rotate
from daskdl.errors import SettingsError
from tests.daskdl.data.image.pictures import labelled, photo, where


@pytest.mark.slow
def test_it_is_scikit_images_rotation():
    floats = photo().astype(np.float32) / 255
    exact = skimage.transform.rotate(floats, 33, order=1, mode="constant", cval=0.25)
    np.testing.assert_allclose(Rotate(33, fill=0.25)(floats), exact, atol=1e-4)


def test_all_that_there_is_at_once_is_scikit_images():
    settings = {"degrees": -20.0, "scale": 1.3, "shear": 12.0}
    floats = photo().astype(np.float32) / 255
    ours = Affine(**settings, shift_x=0.1, shift_y=-0.2)(floats)
    # Rows count downwards, so that angles turn the other way; the middle stays, then it moves.
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


def test_all_is_seen_where_the_canvas_grows():
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


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(SettingsError, match=r"Affine: scale: .* at least 1e-06, found 0"):
        Affine(scale=0)
    with pytest.raises(SettingsError, match="Affine: degrees"):
        Rotate((10, -10))
