"""Flips mirror the images that are drawn, with their boxes."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data.image import HorizontalFlip, VerticalFlip
from daskdl.errors import SettingsError
from tests.daskdl.data.image.pictures import labelled, photo, photos


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


def test_a_probability_is_one():
    with pytest.raises(SettingsError, match=r"VerticalFlip: probability: .* found 2"):
        VerticalFlip(2)
