"""Resizing: the sizes that come out, and agreement with Pillow and scikit-image."""

from __future__ import annotations

import numpy as np
import pytest
import skimage.transform
from PIL import Image

from daskdl.data.image import RandomShortestSide, Resize, ShortestSide
from daskdl.errors import SettingsError
from tests.daskdl.data.image.pictures import photo


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
