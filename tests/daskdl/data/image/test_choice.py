"""Choices: each image goes through one transform, with its boxes; functions as transforms."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data.image import (
    CenterCrop,
    Fill,
    HorizontalFlip,
    PerImage,
    Pipeline,
    RandomApply,
    RandomChoice,
    Resize,
    VerticalFlip,
)
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.data.image.pictures import labelled, photo, photos


def test_each_goes_through_one():
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
    plain = Resize(20)([photo(), photo()[:50]])[:, ::-1]
    assert set(np.unique(result - plain)) == {0, 1}
    with pytest.raises(ShapeError, match=r"PerImage: expected .* to leave the sizes"):
        PerImage(lambda image: image[:9])(labelled())
    with pytest.raises(ShapeError, match="PerImage: image 0: expected uint8 or float32"):
        PerImage(np.float64)(photos())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: RandomChoice([]), "RandomChoice: expected transforms to choose from"),
        (lambda: RandomChoice([np.flipud]), "RandomChoice: expected transforms"),
        (lambda: RandomChoice([Fill(0, 0, 1, 1)], [1, 2]), "weights: expected 1 numbers"),
        (lambda: RandomApply(Fill(0, 0, 1, 1), 1.5), "RandomApply: probability"),
        (lambda: PerImage(3), "PerImage: expected a function, found 3"),
    ],
)
def test_what_is_nothing_to_choose_is_refused(make, says):
    with pytest.raises(SettingsError, match=says):
        make()
