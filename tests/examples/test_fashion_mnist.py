"""The Fashion-MNIST example on a part of the pictures, where the data set is installed."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest


@pytest.fixture
def program(example):
    return example("fashion_mnist")


def test_lenet_learns_from_a_few_pictures(program, capsys):
    if not program.FOLDER.is_dir():
        pytest.skip("no dataset-fashion-mnist here")
    accuracy = program.main(["lenet", "--count", "1536", "--epochs", "4", "--batch", "32"])
    assert accuracy > 0.6
    assert "61,706 parameters, 4 epochs" in capsys.readouterr().out


def test_the_resnet_learns_as_the_program_says(program, capsys):
    if not program.FOLDER.is_dir():
        pytest.skip("no dataset-fashion-mnist here")
    arguments = ["--count", "96", "--epochs", "1", "--batch", "16", "--width", "4"]
    accuracy = program.main(["resnet", *arguments, "--int8"])
    printed = capsys.readouterr().out
    assert f"accuracy on 96 test pictures: {accuracy:.4f}" in printed
    assert abs(float(printed.split("in int8: ")[1]) - accuracy) < 0.1


def test_reads_idx_files(program, tmp_path):
    pictures = np.random.default_rng(0).integers(0, 256, (3, 2, 4), np.uint8)
    for name, array in (("images-idx3", pictures), ("labels-idx1", np.array([7, 0, 9], np.uint8))):
        head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}i", *array.shape)
        (tmp_path / f"t10k-{name}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes()))
    read = program.read(tmp_path, "t10k", 2)
    np.testing.assert_array_equal(read["x"], pictures[:2, ..., None])
    assert read["y"].tolist() == [7, 0]


def test_augmented_pictures_are_mirrored_and_shifted(program):
    x = np.arange(1, 785).astype(np.uint8).reshape(1, 28, 28, 1).repeat(64, 0)
    batch = program.AUGMENTED({"x": x, "y": np.arange(64)}, np.random.default_rng(0))
    assert (batch["x"].shape, batch["x"].dtype) == (x.shape, np.float32)
    levels = np.rint((batch["x"] * program.DEVIATION + program.MEAN) * 255)
    steps = np.diff(levels[:, 10:18, 10:18, 0].astype(int), axis=2) % 256
    assert np.unique(steps).tolist() == [1, 255]  # rows run either way, by one level a pixel
    assert len(np.unique(levels[:, 10, 10])) > 10
