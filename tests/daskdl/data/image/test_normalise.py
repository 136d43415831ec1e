"""Normalisation: one definition for levels and floats, and a mean image."""

from __future__ import annotations

import numpy as np
import pytest
import skimage.transform
from PIL import Image

from daskdl.data.image import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    HorizontalFlip,
    Normalize,
    RandomShortestSide,
    Resize,
    ShortestSide,
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


@pytest.mark.parametrize("size", [(30, 41), (150, 90), (7, 5), (75, 33)])
@pytest.mark.parametrize("filter", ["bilinear", "bicubic"])
def test_it_is_pillows_but_for_its_rounding(size, filter):
    resample = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}[filter]
    for channel in range(3):  # as floats, which Pillow does not round in between
        plane = Image.fromarray(photo()[..., channel].astype(np.float32))
        exact = np.clip(np.asarray(plane.resize(size[::-1], resample)), 0, 255)
        ours = Resize(size, filter)(photo())[..., channel]
        assert np.abs(ours - exact).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("size", [(150, 200), (90, 121), (31, 27)])
def test_without_antialias_it_is_scikit_images(size):
    floats = photo().astype(np.float32) / 255
    exact = skimage.transform.resize(floats, size, order=1, mode="edge", anti_aliasing=False)
    ours = Resize(size, antialias=False)(floats)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, exact, atol=1e-5)


@pytest.mark.parametrize("shape", [(75, 100), (100, 75), (333, 500), (500, 375), (640, 427)])
def test_the_shorter_side_has_its_length(shape):
    image = np.zeros((*shape, 1), np.uint8)
    for side in (32, 224, 256):
        height, width, _ = ShortestSide(side)(image).shape
        assert min(height, width) == side
        assert abs(max(height, width) - side * max(shape) / min(shape)) <= 0.5


def test_the_longer_side_has_its_limit():
    image = np.zeros((100, 300, 1), np.uint8)
    assert ShortestSide(80, longest=200)(image).shape == (67, 200, 1)
    assert ShortestSide(60, longest=200)(image).shape == (60, 180, 1)
    assert ShortestSide(80, longest=200, multiple_of=32)(image).shape == (64, 192, 1)
    assert ShortestSide(1, multiple_of=32)(image).shape == (32, 32, 1)


def test_sides_are_drawn_for_each_image():
    images = np.zeros((40, 20, 30, 1), np.uint8)
    drawn = RandomShortestSide(range(10, 13))(images, np.random.default_rng(0))
    assert {image.shape[:2] for image in drawn} == {(10, 15), (11, 17), (12, 18)}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Resize(0), "Resize: size: expected a whole number from 1"),
        (lambda: Resize((3, 4, 5)), r"found \(3, 4, 5\)"),
        (lambda: Resize(8, filter="area"), "Resize: filter: expected one of 'nearest'"),
        (lambda: ShortestSide(8.5), "ShortestSide: size: .* found 8.5"),
        (lambda: ShortestSide(8, longest=0), "ShortestSide: longest"),
        (lambda: RandomShortestSide([]), "RandomShortestSide: sizes: expected some"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, says):
    with pytest.raises(SettingsError, match=says):
        make()
