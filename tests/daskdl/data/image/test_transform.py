"""Transforms take arrays, lists and batches alike, and join to pipelines."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.data.image import (
    CenterCrop,
    Columns,
    Decode,
    HorizontalFlip,
    Normalize,
    Pipeline,
    RandomCrop,
    RandomErasing,
    RandomResizedCrop,
    Resize,
    ToFloat,
    VerticalFlip,
)  # fmt: skip
from daskdl.data.ragged import Ragged
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.data.image.pictures import file, labelled, photo, photos

STEPS = RandomResizedCrop(32) | HorizontalFlip() | RandomErasing() | Normalize()


def test_one_image_an_array_and_a_list():
    steps = Resize(24) | CenterCrop(20)
    whole = steps(photos())
    assert whole.shape == (4, 20, 20, 3)
    np.testing.assert_array_equal(steps(photos()[1]), whole[1])
    np.testing.assert_array_equal(steps(list(photos())), whole)
    mixed = VerticalFlip(1)([photo(), photo()[:9]])
    assert mixed.shape == (2,)
    np.testing.assert_array_equal(mixed[1], photo()[8::-1])


def test_a_batch_keeps_columns_without_images():
    result = CenterCrop((40, 40))(labelled())
    assert result["x"].shape == (1, 40, 40, 3)
    assert result["masks"].shape == (1, 40, 40)
    assert isinstance(result["boxes"], Ragged)
    np.testing.assert_array_equal(result["boxes"][0], [[0, 0, 30, 20]])
    np.testing.assert_array_equal(result["labels"][0], [1])
    np.testing.assert_array_equal(result["y"], [7])


def test_columns_have_other_names_where_wanted():
    batch = labelled()
    other = {"image": batch["x"], "where": batch["boxes"], "kind": batch["labels"]}
    columns = Columns(images="image", boxes="where", of_boxes=("kind",))
    result = CenterCrop(40)(other, columns=columns)
    assert result.keys() == other.keys()
    np.testing.assert_array_equal(result["kind"][0], [1])


def test_the_same_generator_gives_the_same_images():
    first, again, other = (STEPS(photos(), np.random.default_rng(seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    with pytest.raises(SettingsError, match=r"Pipeline: expected a numpy Generator .* rng=None"):
        STEPS(photos())
    Pipeline([HorizontalFlip(1), Resize(4)])(photos())  # draws nothing, needs no generator


def test_lists_and_bars_make_the_same_pipeline():
    a, b, c = Resize(8), CenterCrop(4), HorizontalFlip()
    assert (a | b | c) == Pipeline([a, b, c]) == Pipeline([Pipeline([a, b]), c]) == a | (b | c)
    assert hash(a | b) == hash(Pipeline([a, b]))
    assert repr(b | c) == "CenterCrop(size=4) | HorizontalFlip(probability=0.5)"
    assert pickle.loads(pickle.dumps(STEPS)).steps[:3] == STEPS.steps[:3]
    np.testing.assert_array_equal(Pipeline([])(photos()), photos())
    with pytest.raises(SettingsError, match=r"Pipeline: expected transforms .* PerImage"):
        Pipeline([np.fliplr])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        a | np.fliplr  # type: ignore[operator]


def test_transforms_map_a_sample_set():
    samples = SampleSet.from_arrays(x=photos(6), y=np.arange(6), partitions=2).map(STEPS)
    batch = samples.head(6)
    assert batch["x"].shape == (6, 32, 32, 3)
    assert batch["x"].dtype == np.float32
    np.testing.assert_array_equal(batch["x"], samples.head(6)["x"])
    assert samples.schema["x"] == ((32, 32, 3), np.dtype(np.float32))


def test_no_images_have_the_shape_that_images_would_have():
    steps = Resize(9) | ToFloat()
    none = steps({"x": photos()[:0], "y": np.arange(0)})
    assert none["x"].shape == (0, 9, 9, 3)
    assert none["x"].dtype == np.float32
    assert STEPS(photos()[:0], np.random.default_rng(0)).shape == (0, 32, 32, 3)
    assert Decode()(np.empty(0, object)).shape == (0,)


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        ({"image": photos()}, "Resize: expected the images in column 'x', found columns 'image'"),
        (photo()[..., 0], r"Resize: expected an image .* found \(75, 100\); add the axis"),
        ([file(photo())], r"Resize: expected images, found bytes; put Decode\(\) before it"),
        (file(photo()), r"put Decode\(\) before it"),
        ({**labelled(), "boxes": [[], []]}, "Resize: boxes: expected entries of 1 images, found 2"),
        ({**labelled(), "masks": []}, "Resize: masks: expected entries of 1 images, found 0"),
    ],
)
def test_batches_that_do_not_fit_are_refused_in_a_sentence(batch, says):
    with pytest.raises(ShapeError, match=says):
        Resize(8)(batch)


def test_errors_name_the_step():
    with pytest.raises(ShapeError, match=r"^RandomCrop: expected a window .* 8 x 8, found 9 x 9"):
        (Resize(8) | RandomCrop(9))(photos(), np.random.default_rng(0))
