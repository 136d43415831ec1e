"""The detector's example: scenes whose boxes surround the objects, and a short training."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from daskdl.errors import DataError, MissingExtraError


@pytest.fixture
def example(example, monkeypatch, wheel):
    monkeypatch.syspath_prepend(str(wheel("segno==1.6.6")))
    return example


@pytest.mark.slow
def test_boxes_surround_pasted_objects(example):
    """Outside of the boxes a scene is its photograph, here of a single colour."""
    scenes = example("scenes")
    grey = np.full((90, 120, 3), 128, np.uint8)
    rng, seen = np.random.default_rng(3), set()
    for _ in range(20):
        pixels, boxes, labels = scenes.Scenes([grey], size=96).draw(rng)
        assert len(boxes) == len(labels)
        outside = np.ones(pixels.shape[:2], bool)
        for left, top, right, bottom in boxes.astype(int):
            outside[top:bottom, left:right] = False
        photograph = pixels[outside]
        changed = (pixels != photograph[0]).any(2)
        assert not changed[outside].any()
        for left, top, right, bottom in boxes.astype(int):
            inside = changed[top:bottom, left:right]
            assert inside.mean() > 0.3
            for edge in (inside[0], inside[-1], inside[:, 0], inside[:, -1]):
                assert edge.any()
        seen.update(labels.tolist())
    assert seen == {0, 1, 2}


def test_zero_scenes_are_refused(example):
    with pytest.raises(DataError, match="at least one scene to draw, found none"):
        example("detection").held_out(0, 32)


def test_no_photograph_is_in_both_parts(example):
    scenes = example("scenes")
    assert not set(scenes.TRAIN) & set(scenes.TEST)
    parts = [scenes.photographs("train"), scenes.photographs("test")]
    assert min(map(len, parts)) >= 3
    assert all(image.dtype == np.uint8 and image.shape[2] == 3 for image in (*parts[0], *parts[1]))


@pytest.mark.parametrize("missing", ["skimage", "segno"])
def test_packages_that_are_missing_are_named(example, monkeypatch, missing):
    scenes = example("scenes")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=f"no {missing}; pip install scikit-image segno"):
        scenes.photographs("train")


@pytest.mark.long
def test_a_short_training_lessens_the_loss(example, tmp_path, capsys):
    path = tmp_path / "detector.safetensors"
    precision = example("detection").main(
        ["--size", "64", "--width", "0.125", "--scenes", "24", "--epochs", "2", "--batch", "8",
         "--test", "8", "--save", str(path)]
    )  # fmt: skip
    assert 0 <= precision <= 1
    assert path.exists()
    lines = capsys.readouterr().out.splitlines()
    losses = [float(line.split()[2]) for line in lines if line[:1].isdigit() and "mAP" not in line]
    assert losses[-1] < losses[0]
