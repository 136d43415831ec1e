"""Normalisation: one definition for levels and floats, and a mean image."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data.image import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    HorizontalFlip,
    Normalize,
    Resize,
    ToFloat,
)
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.data.image.pictures import photo, photos


def test_levels_and_floats_have_the_same_mean():
    expected = (photos() / 255 - IMAGENET_MEAN) / IMAGENET_STD
    levels = Normalize()(photos())
    assert levels.dtype == np.float32
    np.testing.assert_allclose(levels, expected, atol=1e-5)
    floats = Normalize()(photos().astype(np.float32) / 255)
    np.testing.assert_allclose(floats, expected, atol=1e-5)


def test_after_other_steps_it_is_what_it_is_alone():
    steps = Resize((30, 50)) | HorizontalFlip(1)
    np.testing.assert_array_equal((steps | Normalize())(photos()), Normalize()(steps(photos())))
    gray = photo()[..., :1]
    np.testing.assert_allclose(Normalize(0.5, 0.5)(gray), gray / 127.5 - 1, atol=1e-6)


def test_floats_of_any_unit_have_any_mean():
    rain = np.array([[[0.0], [30.0]]], np.float32)
    np.testing.assert_allclose(Normalize(10, 20)(rain)[0, :, 0], [-0.5, 1])


def test_from_zero_to_one():
    result = ToFloat()(np.array([[[0, 51, 255]]], np.uint8))
    np.testing.assert_allclose(result, [[[0, 0.2, 1]]], atol=1e-7)


def test_a_mean_image_is_taken_off_pixel_by_pixel():
    mean = photos().mean(0) / 255
    result = Normalize(mean, (1, 0.5, 0.25))(photos())
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, (photos() / 255 - mean) / [1, 0.5, 0.25], atol=1e-6)
    with pytest.raises(ShapeError, match=r"mean image's size \(60, 80\), found \(75, 100\)"):
        Normalize(mean)(photo())


@pytest.mark.parametrize(
    ("mean", "std", "says"),
    [
        (
            (123.7, 116.3, 103.5),
            1,
            "mean: expected fractions of white, 0 to 1, found 123.7; divide",
        ),
        (0, (58, 57, 57), "std: expected fractions of white"),
        (0, 0, "std: expected one number above 0"),
        (np.zeros((2, 2)), 1, r"mean: expected .* found shape \(2, 2\)"),
    ],
)
def test_what_does_not_fit_levels_is_refused(mean, std, says):
    with pytest.raises(SettingsError, match=says):
        Normalize(mean, std)(photo())


def test_the_channels_have_to_be_the_images():
    with pytest.raises(ShapeError, match=r"Normalize: mean: expected 1 channels .* found 3"):
        Normalize()(photo()[..., :1])
