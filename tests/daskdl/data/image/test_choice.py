"""Choices: each image goes through one transform, with its boxes; functions as transforms."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data.image import (
    IMAGENET_MEAN,
    CenterCrop,
    Expand,
    Fill,
    HorizontalFlip,
    Pad,
    PerImage,
    Pipeline,
    RandomApply,
    RandomChoice,
    RandomErasing,
    Resize,
    VerticalFlip,
)
from daskdl.errors import ShapeError
from tests.daskdl.data.image.pictures import labelled, photo, photos, where


def test_each_image_goes_through_one_transform():
    images = np.repeat(photos(1), 300, 0)
    choice = RandomChoice([HorizontalFlip(1), VerticalFlip(1), Pipeline([])], [1, 2, 1])
    result = choice(images, np.random.default_rng(0))
    wanted = (images[0, :, ::-1], images[0, ::-1], images[0])
    same = np.array([(result == image).all((1, 2, 3)) for image in wanted])
    assert (same.sum(0) == 1).all()
    np.testing.assert_allclose(same.mean(1), [0.25, 0.5, 0.25], atol=0.08)


def test_boxes_and_masks_go_with_their_images():
    many = {key: list(np.repeat(value, 30, 0)) for key, value in labelled().items()}
    result = RandomApply(CenterCrop(40), 0.4)(many, np.random.default_rng(0))
    cut = np.array([image.shape[:2] == (40, 40) for image in result["x"]])
    assert 5 < cut.sum() < 20
    for i, is_cut in enumerate(cut):
        assert result["masks"][i].shape == result["x"][i].shape[:2]
        np.testing.assert_array_equal(result["labels"][i], [1] if is_cut else [1, 2])
        np.testing.assert_array_equal(
            result["boxes"][i][0], [0, 0, 30, 20] if is_cut else [20, 10, 50, 30]
        )


def test_functions_of_one_image_are_steps():
    def noisy(image, rng):
        return image + rng.integers(0, 2, image.shape, np.uint8)

    steps = Resize(20) | PerImage(np.flipud) | PerImage(noisy)
    result = steps([photo(), photo()[:50]], np.random.default_rng(0))
    resized = Resize(20)([photo(), photo()[:50]])[:, ::-1]
    assert set(np.unique(result - resized)) == {0, 1}
    with pytest.raises(ShapeError, match=r"PerImage: expected .* to leave the sizes"):
        PerImage(lambda image: image[:9])(labelled())
    with pytest.raises(ShapeError, match="PerImage: image 0: expected uint8 or float32"):
        PerImage(np.float64)(photos())


def test_an_image_lies_in_the_middle_of_its_canvas():
    padded = Pad((81, 90), fill=(1, 0, 0))(photo())
    assert padded.shape == (81, 100, 3)
    np.testing.assert_array_equal(padded[3:78], photo())
    assert (padded[:3] == [255, 0, 0]).all()
    assert (padded[78:] == [255, 0, 0]).all()
    first = Pad(110, centre=False)([photo(), photo()[:50]])
    np.testing.assert_array_equal(first[1, :50, :100], photo()[:50])
    assert not first[1, 50:].any()
    assert Pad(60)(photos()).shape == photos().shape


def test_some_images_lie_somewhere_on_a_larger_canvas():
    batch = labelled()
    many = {key: list(np.repeat(value, 40, 0)) for key, value in batch.items()}
    result = Expand(3, probability=0.5)(many, np.random.default_rng(0))
    sizes = np.array([image.shape[:2] for image in result["x"]])
    assert 10 < (sizes == (60, 80)).all(1).sum() < 30
    assert sizes.max() > 180
    assert (sizes <= (180, 240)).all()
    assert len({where(mask, 1) for mask in result["masks"]}) > 10
    mean = np.rint(255 * np.array(IMAGENET_MEAN))
    for image, mask, boxes in zip(result["x"], result["masks"], result["boxes"], strict=True):
        left, top, _, _ = where(mask, 1)
        np.testing.assert_array_equal(boxes[0], where(mask, 1))
        np.testing.assert_array_equal(image[top - 10 :, left - 20 :][:60, :80], batch["x"][0])
        outside = np.ones(image.shape[:2], bool)
        outside[top - 10 : top + 50, left - 20 : left + 60] = False
        assert (image[outside] == mean).all()


def test_a_part_is_covered():
    images = photos()
    before = images.copy()
    covered = Fill(0.25, 0.5, 0.5, 1.0, fill=0)(images)
    assert not covered[:, 30:, 20:40].any()
    covered[:, 30:, 20:40] = images[:, 30:, 20:40]
    np.testing.assert_array_equal(covered, images)
    np.testing.assert_array_equal(images, before)


def test_a_window_is_erased():
    images = np.full((100, 40, 40, 3), 255, np.uint8)
    erased = RandomErasing(0.6, area=(0.1, 0.2), fill=0.2)(images, np.random.default_rng(0))
    shares = (erased == 51).all(-1).mean((1, 2))
    assert 45 < (shares > 0).sum() < 75
    assert 0.09 < shares[shares > 0].min() < 0.13
    assert 0.17 < shares.max() < 0.21
    assert np.isin(erased, (51, 255)).all()
    image = erased[np.argmax(shares > 0), ..., 0]
    left, top, right, bottom = where(image, 51)
    assert (image[top:bottom, left:right] == 51).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_noise_has_every_value(dtype):
    images = np.zeros((4, 50, 50, 3), dtype)
    noisy = RandomErasing(1, area=(0.3, 0.4), fill="noise")(images, np.random.default_rng(0))
    white = 255 if dtype == np.uint8 else 1
    values = noisy[noisy > 0]
    assert noisy.dtype == dtype
    assert values.max() <= white
    assert abs(values.mean() / white - 0.5) < 0.02


def test_images_of_different_sizes_are_erased_each():
    images = [np.full((n, 30, 1), 9, np.uint8) for n in (20, 30, 40)]
    erased = RandomErasing(1, area=(0.2, 0.3), fill=0)(images, np.random.default_rng(0))
    assert [image.shape for image in erased] == [image.shape for image in images]
    assert all(0.15 < (image == 0).mean() < 0.35 for image in erased)
