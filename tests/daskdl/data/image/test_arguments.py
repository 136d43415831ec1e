"""Arguments of transforms, errors without Pillow, and reading of pixels."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from daskdl import plot
from daskdl.data import image
from daskdl.data.image.decode import _decode
from daskdl.data.image.pixels import nearest, rows_contiguous, warped
from daskdl.errors import MissingExtraError, SettingsError
from daskdl.kernels.pixels.resample import COLUMNS, HEIGHT, MIRRORED, ROWS, WIDTH, H, W
from tests.daskdl.data.image.pictures import photo


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: image.Affine(scale=0), "Affine: scale: .* at least 1e-06, found 0"),
        (lambda: image.Rotate((10, -10)), "Affine: degrees"),
        (lambda: image.Rotate((0, np.inf)), r"degrees: expected a number or \(low, high\), found"),
        (lambda: image.Rotate("a"), "Affine: degrees: .* found 'a'"),
        (lambda: image.VerticalFlip(2), "VerticalFlip: probability: .* found 2"),
        (lambda: image.VerticalFlip(None), "expected a number from 0 to 1, found None"),
        (lambda: image.CenterCrop(-1), "CenterCrop: size"),
        (lambda: image.CenterCrop((1, 0)), "CenterCrop: size"),
        (lambda: image.FixedCrop(5, 0, 5, 9), "FixedCrop: expected left < right"),
        (lambda: image.FixedCrop(0, 0, 2, 1, fractions=True), "FixedCrop"),
        (lambda: image.RandomResizedCrop(8, area=(0, 1)), "area: expected more than 0"),
        (lambda: image.RandomResizedCrop(8, aspect=(2, 1)), "aspect: expected a number or"),
        (lambda: image.RandomChoice([]), "RandomChoice: expected transforms to choose from"),
        (lambda: image.RandomChoice([np.flipud]), "RandomChoice: expected transforms"),
        (
            lambda: image.RandomChoice([image.Resize(8)], [1, 2]),
            "weights: expected 1 numbers",
        ),
        (lambda: image.RandomApply(image.Fill(0, 0, 1, 1), 1.5), "RandomApply: probability"),
        (lambda: image.PerImage(3), "PerImage: expected a function, found 3"),
        (lambda: image.Pad(0), "Pad: size"),
        (lambda: image.Expand(0.5), "Expand: most"),
        (lambda: image.Fill(0.5, 0, 0.2, 1), "Fill: expected 0 <= left < right"),
        (lambda: image.RandomErasing(fill="black"), "RandomErasing: fill: .* found 'black'"),
        (lambda: image.ColorJitter(brightness=(-1, 1)), "brightness: .* at least 0"),
        (lambda: image.ColorJitter(hue=0.6), "hue: expected -0.5 to 0.5 turns"),
        (lambda: image.ColorJitter(probability=2), "ColorJitter: probability"),
        (lambda: image.Lighting(-1), "Lighting: std"),
        (lambda: image.Lighting(variation=(1, 2)), r"Lighting: axes: expected \(2, 2\)"),
        (lambda: image.ChannelOrder((0, 2)), "each of 0 to 1 once"),
        (lambda: image.ChannelOrder("bgr"), "ChannelOrder: order: expected one of 'random'"),
        (lambda: image.Resize(0), "Resize: size: expected a whole number from 1"),
        (lambda: image.Resize((3, 4, 5)), r"found \(3, 4, 5\)"),
        (lambda: image.Resize("ab"), "Resize: size: .* found 'ab'"),
        (lambda: image.Resize(8, filter="area"), "Resize: filter: expected one of 'nearest'"),
        (lambda: image.ShortestSide(8.5), "ShortestSide: size: .* found 8.5"),
        (lambda: image.ShortestSide(8, longest=0), "ShortestSide: longest"),
        (lambda: image.RandomShortestSide([]), "RandomShortestSide: sizes: expected some"),
        (lambda: image.RandomIoUCrop(scale=(0.5, 2)), r"RandomIoUCrop: scale: .* found \(0.5, 2\)"),
        (lambda: image.RandomIoUCrop([1.5]), "RandomIoUCrop: overlaps"),
        (lambda: image.RandomIoUCrop([], whole=False), "something to choose from"),
        (lambda: image.Decode("BGR"), "Decode: mode: expected one of 'RGB'"),
        (lambda: image.Decode(at_least=0), "Decode: at_least"),
        (lambda: image.Normalize(0, 0), "std: expected one number above 0"),
        (lambda: image.Normalize(np.zeros((2, 2)), 1), r"mean: expected .* found shape \(2, 2\)"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, says):
    with pytest.raises(SettingsError, match=says):
        make()


def test_what_decodes_or_draws_names_the_extra(monkeypatch):
    for name in ("PIL", "PIL.Image", "PIL.ImageDraw", "PIL.ImageFont", "PIL.ImageOps"):
        monkeypatch.setitem(sys.modules, name, None)
    message = r"expected Pillow, .* found it not installed; pip install 'daskdl\[images\]'"
    picture = np.zeros((4, 4, 3), np.float32)
    with pytest.raises(MissingExtraError, match=f"^a.png: {message}"):
        _decode(b"", "RGB", None, True, "a.png")
    with pytest.raises(MissingExtraError, match=f"^plot.boxes: {message}"):
        plot.boxes(picture, [[0, 0, 1, 1]])
    with pytest.raises(MissingExtraError, match=f"^plot.contact_sheet: {message}"):
        plot.contact_sheet([picture], [[picture]])


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


def test_masks_are_zero_where_a_map_leads_outside():
    mask = np.array([[1, 2], [3, 4]], np.uint8)
    turned = warped(mask, np.array([[1.0, 0, -1], [0, 1, 0]]), np.array([2, 3]))
    np.testing.assert_array_equal(turned, [[0, 1, 2], [0, 3, 4]])
