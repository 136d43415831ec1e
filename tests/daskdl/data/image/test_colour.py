"""Colours: every change against its definition in floats, with scikit-image's conversions."""

from __future__ import annotations

import numpy as np
import pytest
import skimage.color

from daskdl.data.image import ChannelOrder, ColorJitter, Lighting
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.data.image.pictures import photo, photos

FLOATS = photo().astype(np.float32) / 255


def jitter(pixels, seed=0, **settings):
    return ColorJitter(**settings)(pixels, np.random.default_rng(seed))


def luma(pixels):
    return pixels @ np.array([0.299, 0.587, 0.114])


def expected(pixels, step, value):
    """Return floats from 0 to 1 as the definitions have them."""
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
def test_each_change_is_what_it_is_defined_as(step, value):
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


def test_all_at_once_is_one_after_the_other_in_any_order():
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


def test_every_image_is_drawn_its_own():
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


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ColorJitter(brightness=(-1, 1)), "brightness: .* at least 0"),
        (lambda: ColorJitter(hue=0.6), "hue: expected -0.5 to 0.5 turns"),
        (lambda: ColorJitter(probability=2), "ColorJitter: probability"),
        (lambda: Lighting(-1), "Lighting: std"),
        (lambda: Lighting(variation=(1, 2)), r"Lighting: axes: expected \(2, 2\)"),
        (lambda: ChannelOrder((0, 2)), "each of 0 to 1 once"),
        (lambda: ChannelOrder("bgr"), "ChannelOrder: order: expected one of 'random'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, says):
    with pytest.raises(SettingsError, match=says):
        make()
