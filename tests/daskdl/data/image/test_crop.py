"""Crops: where they lie, and how what is drawn is distributed."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data.image import CenterCrop, FixedCrop, RandomCrop, RandomResizedCrop
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.data.image.pictures import photo, photos


def test_the_middle_and_a_fixed_place():
    np.testing.assert_array_equal(CenterCrop((15, 20))(photo()), photo()[30:45, 40:60])
    np.testing.assert_array_equal(FixedCrop(10, 5, 30, 25)(photo()), photo()[5:25, 10:30])
    quarter = FixedCrop(0.5, 0, 1, 0.5, fractions=True)
    np.testing.assert_array_equal(quarter(photo()), photo()[:38, 50:])
    two = quarter([photo(), photo()[:60]])
    assert [image.shape for image in two] == [(38, 50, 3), (30, 50, 3)]


def test_random_crops_lie_everywhere_equally_often():
    places = np.arange(5 * 6, dtype=np.uint8).reshape(1, 5, 6, 1)
    crops = RandomCrop((4, 4))(np.repeat(places, 600, 0), np.random.default_rng(0))
    corners, counts = np.unique(crops[:, 0, 0, 0], return_counts=True)
    assert set(corners) == {0, 1, 2, 6, 7, 8}
    assert counts.min() > 70
    np.testing.assert_array_equal(crops[0, :, :, 0] - crops[0, 0, 0, 0], places[0, :4, :4, 0])


def test_windows_of_random_size_have_the_areas_and_aspects_asked_for():
    crop = RandomResizedCrop(8, area=(0.2, 0.6), aspect=(0.5, 2))
    sizes = np.tile([300, 400], (500, 1))
    windows = crop.windows(sizes, np.random.default_rng(0))
    top, left, rows, columns = windows.T
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert ((windows[:, :2] + windows[:, 2:]) <= sizes).all()
    free = left / np.maximum(400 - columns, 1)  # evenly from one side to the other
    np.testing.assert_allclose(np.percentile(free, [5, 50, 95]), [0.05, 0.5, 0.95], atol=0.06)
    shares, aspects = rows * columns / 120_000, columns / rows
    assert 0.199 < shares.min() < 0.21
    assert 0.58 < shares.max() < 0.601
    assert 0.49 < aspects.min() < 0.56
    assert 1.8 < aspects.max() < 2.02
    # Wide windows fit this image more often than tall ones.
    assert 0 < np.log(aspects).mean() < 0.1


def test_an_image_without_such_a_window_is_cut_in_the_middle():
    crop = RandomResizedCrop(8, area=(0.9, 1.0), aspect=(3 / 4, 4 / 3))
    (window,) = crop.windows(np.array([[30, 300]]), np.random.default_rng(0))
    np.testing.assert_array_equal(window, [0, 130, 30, 40])
    assert crop(photos(), np.random.default_rng(0)).shape == (4, 8, 8, 3)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: CenterCrop(-1), "CenterCrop: size"),
        (lambda: FixedCrop(5, 0, 5, 9), "FixedCrop: expected left < right"),
        (lambda: FixedCrop(0, 0, 2, 1, fractions=True), "FixedCrop"),
        (lambda: RandomResizedCrop(8, area=(0, 1)), "area: expected more than 0"),
        (lambda: RandomResizedCrop(8, aspect=(2, 1)), "aspect: expected a number or"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, says):
    with pytest.raises(SettingsError, match=says):
        make()


def test_an_image_that_is_too_small_is_refused():
    for crop in (CenterCrop(76), RandomCrop(76), FixedCrop(0, 0, 101, 5)):
        with pytest.raises(ShapeError, match=rf"{type(crop).__name__}: .*image 0 of 75 x 100"):
            crop(photo(), np.random.default_rng(0))
