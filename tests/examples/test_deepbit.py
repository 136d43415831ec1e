"""DeepBit's example finds more pictures of a class than random codes do."""

from __future__ import annotations

import gzip
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    """Return the example, imported as Python does when it is run."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module("deepbit")
    for name in ("deepbit", "fashion_mnist"):
        sys.modules.pop(name, None)


def write(folder, part, count, seed):
    """Write pictures in which the label is a bright bar's row, as MNIST's files are."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count, dtype=np.uint8)
    x = rng.integers(0, 90, (count, 28, 28), dtype=np.uint8)
    for image, label in zip(x, labels, strict=True):
        image[4 + 2 * label : 8 + 2 * label] += 150
    for name, array in (("images-idx3", x), ("labels-idx1", labels)):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
        with gzip.open(folder / f"{part}-{name}-ubyte.gz", "wb") as file:
            file.write(head + array.tobytes())


@pytest.mark.long
def test_codes_find_pictures_of_the_same_class(example, tmp_path, capsys):
    write(tmp_path, "train", 1100, 0)
    write(tmp_path, "t10k", 40, 1)
    found = example.main(
        ["--folder", str(tmp_path), "--epochs", "1", "--pretrain", "1", "--queries", "40"]
    )
    assert len(found) == 5
    chance = found["random codes"]
    assert found["DeepBit, trunk taught five other classes"] > chance + 0.1
    assert found["signs of principal components"] > chance + 0.1
    assert "1,100 pictures to find, 40 queries" in capsys.readouterr().out


def test_precision_by_hand(example):
    codes = np.array([[0], [1], [3], [255]], np.uint8)
    value = example.precision(codes, np.array([0, 1, 0, 1]), codes[:1], np.array([0]))
    assert value == pytest.approx((1 + 2 / 3) / 2)
