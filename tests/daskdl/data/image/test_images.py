"""Images: steps recorded and done in one pass give the results of the steps one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.data.image import CenterCrop, ColorJitter, HorizontalFlip
from daskdl.data.image.boxes import Boxes
from daskdl.data.image.images import Images
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.data.image.pictures import labelled, photo, photos, where


def steps(least: int, count: int) -> st.SearchStrategy[list[tuple[str, object]]]:
    """Draw steps, none of which makes an image smaller than ``least`` by resizing."""
    side = st.integers(least, 90)
    crop = st.tuples(st.just("crop"), st.tuples(*[st.floats(0, 1)] * 4))
    resize = st.tuples(st.just("resize"), st.tuples(side, side))
    return st.lists(
        st.one_of(crop, resize, st.tuples(st.just("flip"), st.integers(0, 1))), max_size=count
    )


def take(images: Images, step: str, argument: object) -> None:
    if step == "crop":
        size = images.sizes[0]
        window = [int(f * (n - 1)) for f, n in zip(argument[:2], size, strict=True)]  # type: ignore[index]
        window += [
            1 + int(f * (n - 1 - w))
            for f, n, w in zip(argument[2:], size, window, strict=True)  # type: ignore[index]
        ]
        images.crop(np.array([window]))
    elif step == "resize":
        images.resize(np.array(argument))
    else:
        images.flip(np.array([True]), argument)  # type: ignore[arg-type]


@settings(max_examples=40)
@given(steps(1, 5))
def test_steps_in_one_pass_give_what_they_give_one_by_one(steps):
    together = Images(photo()[None])
    one = Images(photo()[None])
    for step in steps:
        take(together, *step)
        take(one, *step)
        one = Images(np.array(one.pixels))  # so that no step is left to do
    np.testing.assert_array_equal(together.pixels, one.pixels)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_window_is_cut_out_of_what_was_mirrored(axis):
    images = Images(photo()[None])
    images.flip(np.array([True]), axis)
    images.crop(np.array([[2, 3, 10, 20]]))
    np.testing.assert_array_equal(images.pixels[0], np.flip(photo(), axis)[2:12, 3:23])


@settings(max_examples=20)
@given(steps(60, 3))
def test_boxes_and_masks_follow_their_pixels(steps):
    batch = labelled(75, 100)
    boxes = Boxes(batch["boxes"], {"labels": batch["labels"]})
    images = Images(batch["x"], boxes, batch["masks"])
    for step in steps:
        take(images, *step)
    mask = images.masks[0]
    assert mask.shape == tuple(images.sizes[0])
    for edges, label in zip(boxes.edges, boxes.columns["labels"], strict=True):
        if (mask == label).any():  # a sliver may lie between two of a smaller image's pixels
            np.testing.assert_allclose(edges, where(mask, label), atol=2)
    assert set(np.unique(mask)) <= {0, *boxes.columns["labels"]}


def test_images_of_different_sizes_go_together():
    images = Images([photo(), photo()[:50], photo()[:, :40]])
    images.resize(np.array([[30, 40], [20, 40], [30, 20]]))
    images.crop(np.array([[5, 0, 20, 20], [0, 5, 20, 20], [1, 0, 20, 20]]))
    assert images.pixels.shape == (3, 20, 20, 3)
    lone = Images(photo()[None, :50])
    lone.resize(np.array([20, 40]))
    np.testing.assert_array_equal(images.pixels[1], lone.pixels[0][:, 5:25])


def test_pixels_of_the_caller_are_not_changed():
    original = photos()
    before = original.copy()
    images = Images(original)
    images.flip(np.ones(4, bool), 1)
    images.crop(np.tile([0, 0, 30, 30], (4, 1)))
    images.paste(np.array([50, 50]), np.full((4, 2), 5), 0.5)
    assert images.pixels.shape == (4, 50, 50, 3)
    np.testing.assert_array_equal(original, before)


def test_a_canvas_shows_the_image_in_its_place():
    batch = labelled()
    images = Images(batch["x"], Boxes(batch["boxes"]), batch["masks"])
    images.paste(np.array([[70, 60]]), np.array([[10, -10]]), (1, 0, 0.2))
    (pixels,) = images.pixels
    np.testing.assert_array_equal(pixels[10:, :60], batch["x"][0, :, 10:70])
    np.testing.assert_array_equal(pixels[:10], np.broadcast_to([255, 0, 51], (10, 60, 3)))
    np.testing.assert_array_equal(images.boxes.edges, [[10, 20, 40, 40], [0, 45, 5, 65]])
    assert where(images.masks[0], 1) == (10, 20, 40, 40)
    images.paste(np.array([[4, 4]]), np.array([[100, -200]]), 1)  # outside the canvas
    assert (images.pixels[0] == 255).all()
    assert not len(images.boxes)


def test_some_images_are_taken_and_put_back():
    images = Images(photos(), Boxes([[[0, 0, 4, 4]], [], [[1, 1, 5, 5], [2, 2, 6, 6]], []]))
    some = images.take(np.array([2, 3]))
    some.flip(np.ones(2, bool), 1)
    images.put(np.array([2, 3]), some)
    np.testing.assert_array_equal(images.pixels[2], photos()[2, :, ::-1])
    np.testing.assert_array_equal(images.pixels[1], photos()[1])
    np.testing.assert_array_equal(
        images.boxes.edges, [[0, 0, 4, 4], [75, 1, 79, 5], [74, 2, 78, 6]]
    )
    np.testing.assert_array_equal(images.boxes.owners, [0, 2, 2])


@pytest.mark.parametrize(
    ("pixels", "says"),
    [
        (
            np.zeros((2, 4, 4)),
            r"expected \(height, width, channels\), found \(4, 4\); add the axis",
        ),
        (np.zeros((2, 4, 4, 3)), "expected uint8 or float32, found float64; convert it"),
        ([np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4, 1), np.uint8)], "3 channels and .image 1"),
        ([np.zeros((0, 4, 3), np.uint8)], r"found \(0, 4, 3\)"),
        (["photo.jpg"], "expected an array, found str"),
    ],
)
def test_arrays_that_are_no_images_are_refused(pixels, says):
    with pytest.raises(ShapeError, match=says):
        Images(pixels)


def test_windows_and_colours_that_do_not_fit_are_refused():
    images = Images(photos(), name="CenterCrop")
    with pytest.raises(ShapeError, match=r"CenterCrop: .* within image 0 of 60 x 80, found 61 x 4"):
        images.crop(np.tile([0, 0, 61, 4], (4, 1)))
    with pytest.raises(SettingsError, match="fractions of white, 0 to 1, found 128; divide"):
        images.colour(128)
    with pytest.raises(SettingsError, match="colour of 3 numbers"):
        images.colour((1, 0))
    with pytest.raises(SettingsError, match="filter: expected nearest, bilinear, bicubic"):
        images.resize(np.array([4, 4]), "lanczos")
    with pytest.raises(ShapeError, match=r"mask 1: expected the image's \(60, 80\)"):
        Images(photos(2), masks=[np.zeros((60, 80)), np.zeros((6, 8))])


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::-1],
        lambda x: x[:, ::2, 1:],
        lambda x: x[:, :, ::2],
        lambda x: x[..., ::-1],
        lambda x: np.broadcast_to(x[:1], x.shape),
    ],
)
def test_views_of_images_give_the_same_as_copies(view):
    steps = CenterCrop(30) | HorizontalFlip(1) | ColorJitter((1.2, 1.2))
    some = view(photos())
    result = steps(some, np.random.default_rng(0))
    expected = steps([np.array(image) for image in some], np.random.default_rng(0))
    np.testing.assert_array_equal(result, expected)
