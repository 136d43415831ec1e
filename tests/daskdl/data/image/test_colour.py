"""Colours against their definition in floats, and normalisation of levels and floats."""

from __future__ import annotations

import numpy as np
import pytest
import skimage.color
import skimage.transform
from PIL import Image

from daskdl.data.image import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    ChannelOrder,
    ColorJitter,
    HorizontalFlip,
    Lighting,
    Normalize,
    RandomShortestSide,
    Resize,
    ShortestSide,
    ToFloat,
)
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.data.image.pictures import photo, photos

FLOATS = photo().astype(np.float32) / 255


def jitter(pixels, seed=0, **settings):
    return ColorJitter(**settings)(pixels, np.random.default_rng(seed))


def luma(pixels):
    return pixels @ np.array([0.299, 0.587, 0.114])


def expected(pixels, step, value):
    """Return the changed pixels, floats from 0 to 1, by definition."""
    gray = luma(pixels)[..., None]
    if step == "brightness":
        result = value * pixels
    elif step == "contrast":
        result = gray.mean() + value * (pixels - gray.mean())
    elif step == "saturation":
        result = gray + value * (pixels - gray)
    else:
        yiq = skimage.color.rgb2yiq(pixels)
        chroma = (yiq[..., 1] + 1j * yiq[..., 2]) * np.exp(-2j * np.pi * value)
        result = skimage.color.yiq2rgb(np.stack([yiq[..., 0], chroma.real, chroma.imag], -1))
    return np.clip(result, 0, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "value"),
    [
        ("brightness", 0.6), ("brightness", 1.7), ("contrast", 0.3), ("contrast", 1.8),
        ("saturation", 0.0), ("saturation", 2.5), ("hue", 0.2), ("hue", -0.5),
    ],
)  # fmt: skip
def test_each_change_follows_its_definition(step, value):
    exact = expected(FLOATS, step, value)
    floats = jitter(FLOATS, **{step: (value, value)})
    np.testing.assert_allclose(floats, exact, atol=3e-3 if step == "hue" else 1e-5)
    levels = jitter(photo(), **{step: (value, value)})
    assert levels.dtype == np.uint8
    np.testing.assert_allclose(levels, 255 * exact, atol=1.3 if step == "hue" else 0.51)


def test_hue_goes_the_way_of_the_colour_wheel():
    red = np.full((2, 2, 3), (200, 40, 40), np.uint8)
    turns = [jitter(red, hue=(turn, turn))[0, 0].argmax() for turn in (0, 1 / 3, -1 / 3)]
    assert turns == [0, 1, 2]  # red, green, blue


def test_changes_at_once_are_those_one_by_one_in_any_order():
    pale = (0.3 + 0.3 * FLOATS).astype(np.float32)  # so that nothing is clipped in between
    values = {"brightness": 1.2, "contrast": 0.7, "saturation": 1.4, "hue": 0.05}
    together = jitter(pale, **{step: (value, value) for step, value in values.items()})
    for order in (list(values), list(values)[::-1]):
        one_by_one = pale
        for step in order:
            one_by_one = expected(one_by_one, step, values[step])
        np.testing.assert_allclose(together, one_by_one, atol=3e-3)
    darker = jitter(pale, offset=(-0.1, -0.1), contrast=(0.5, 0.5))
    np.testing.assert_allclose(darker, expected(pale, "contrast", 0.5) - 0.1, atol=1e-5)


def test_every_image_draws_its_own_change():
    images = np.repeat(FLOATS[None, :20, :20], 100, 0)
    bright = jitter(images, brightness=0.5)
    factors = bright.max((1, 2, 3)) / images.max()
    inside = factors * images.max() < 1
    assert 0.5 <= factors.min() < 0.55
    assert len(np.unique(factors[inside])) > 50
    some = jitter(images, brightness=(0.5, 0.5), probability=0.3)
    changed = (some != images).any((1, 2, 3))
    assert 15 < changed.sum() < 45
    np.testing.assert_array_equal(some[~changed], images[~changed])


def test_gray_images_have_brightness_and_contrast_alone():
    gray = photo()[..., :1]
    result = jitter(gray, contrast=(0.5, 0.5))
    np.testing.assert_allclose(result, gray.mean() + (gray - gray.mean()) / 2, atol=0.51)
    with pytest.raises(ShapeError, match=r"ColorJitter: expected images of 3 channels .* found 1"):
        jitter(gray, saturation=0.5)


def test_lighting_adds_along_the_axes():
    images = np.full((400, 2, 2, 3), 0.5, np.float32)
    noise = Lighting(0.1)(images, np.random.default_rng(0)) - 0.5
    assert (noise == noise[:, :1, :1]).all()
    amounts = noise[:, 0, 0] @ np.linalg.inv(np.asarray(Lighting().axes)).T
    np.testing.assert_allclose(amounts.std(0), 0.1 * np.asarray(Lighting().variation), rtol=0.1)
    levels = Lighting(0.1)(np.full((400, 2, 2, 3), 128, np.uint8), np.random.default_rng(0))
    np.testing.assert_allclose(levels, 128 + 255 * noise, atol=0.51)
    with pytest.raises(ShapeError, match="Lighting: expected images of 3 channels, found 1"):
        Lighting()(photo()[..., :1], np.random.default_rng(0))


def test_channels_change_places():
    np.testing.assert_array_equal(ChannelOrder((2, 1, 0))(photos()), photos()[..., ::-1])
    orders = ChannelOrder("random")(np.tile(np.uint8([1, 2, 3]), (60, 2, 2, 1)), rng())
    assert len({tuple(image[0, 0]) for image in orders}) == 6
    np.testing.assert_array_equal(np.sort(orders), np.tile([1, 2, 3], (60, 2, 2, 1)))
    four = np.tile(np.uint8([1, 2, 3, 4]), (1, 2, 2, 1))
    np.testing.assert_array_equal(ChannelOrder((3, 0, 1, 2))(four)[0, 0, 0], [4, 1, 2, 3])
    with pytest.raises(ShapeError, match="ChannelOrder: expected images of 2 channels, found 3"):
        ChannelOrder((1, 0))(photo())


def rng():
    return np.random.default_rng(0)


def test_levels_and_floats_have_the_same_mean():
    expected = (photos() / 255 - IMAGENET_MEAN) / IMAGENET_STD
    levels = Normalize()(photos())
    assert levels.dtype == np.float32
    np.testing.assert_allclose(levels, expected, atol=1e-5)
    floats = Normalize()(photos().astype(np.float32) / 255)
    np.testing.assert_allclose(floats, expected, atol=1e-5)


def test_normalize_after_other_steps_is_the_same_as_alone():
    steps = Resize((30, 50)) | HorizontalFlip(1)
    np.testing.assert_array_equal((steps | Normalize())(photos()), Normalize()(steps(photos())))
    gray = photo()[..., :1]
    np.testing.assert_allclose(Normalize(0.5, 0.5)(gray), gray / 127.5 - 1, atol=1e-6)


def test_floats_of_any_unit_have_any_mean():
    rain = np.array([[[0.0], [30.0]]], np.float32)
    np.testing.assert_allclose(Normalize(10, 20)(rain)[0, :, 0], [-0.5, 1])


def test_floats_are_from_zero_to_one():
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
    ],
)
def test_means_that_do_not_fit_levels_are_refused(mean, std, says):
    with pytest.raises(SettingsError, match=says):
        Normalize(mean, std)(photo())


def test_means_have_to_fit_the_channels():
    with pytest.raises(ShapeError, match=r"Normalize: mean: expected 1 channels .* found 3"):
        Normalize()(photo()[..., :1])


@pytest.mark.parametrize("size", [(30, 41), (150, 90), (7, 5), (75, 33)])
@pytest.mark.parametrize("filter", ["bilinear", "bicubic"])
def test_resizing_is_pillows_but_for_its_rounding(size, filter):
    resample = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}[filter]
    for channel in range(3):  # as floats, which Pillow does not round in between
        plane = Image.fromarray(photo()[..., channel].astype(np.float32))
        exact = np.clip(np.asarray(plane.resize(size[::-1], resample)), 0, 255)
        ours = Resize(size, filter)(photo())[..., channel]
        assert np.abs(ours - exact).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("size", [(150, 200), (90, 121), (31, 27)])
def test_resizing_without_antialias_is_scikit_images(size):
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
