"""The examples on pictures learn colours of small ones, out of a folder and out of Parquet."""

from __future__ import annotations

import importlib
import io
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COLOURS = {"blue": (30, 40, 220), "green": (30, 200, 40), "red": (220, 40, 30)}


@pytest.fixture
def example(monkeypatch):
    """Return a function that imports an example as Python does when it is run."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module
    for name in ("pictures", "resnet", "inception", "fashion_mnist"):
        sys.modules.pop(name, None)


def files(count: int, seed: int):
    """Yield (class, bytes of a PNG): one colour and noise, of different sizes."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(seed)
    for i in range(count):
        name, colour = list(COLOURS.items())[i % 3]
        noise = rng.integers(-25, 26, (36 + i % 3, 40, 3))
        pixels = np.clip(np.array(colour) + noise, 0, 255).astype(np.uint8)
        held = io.BytesIO()
        image.fromarray(pixels).save(held, "PNG")
        yield name, held.getvalue()


@pytest.fixture
def folder(tmp_path):
    for part, count in (("train", 24), ("val", 9)):
        for i, (name, data) in enumerate(files(count, seed=count)):
            file = tmp_path / part / name / f"{i}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    return tmp_path


@pytest.fixture
def tables(tmp_path):
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    for part, count in (("train", 24), ("val", 9)):
        names, data = zip(*files(count, seed=count), strict=True)
        labels = [list(COLOURS).index(name) for name in names]
        table = arrow.table({"image": list(data), "label": labels})
        parquet.write_table(table, tmp_path / f"{part}.parquet")
    return tmp_path


TINY = ["--classes", "3", "--size", "32", "--workers", "0", "--batch-size", "8", "--warmup", "1"]


def test_resnet_learns_colours_out_of_a_folder(example, folder, capsys):
    more = ["--depth", "18", "--stem", "small", "--width", "8", "--rate", "3.2", "--epochs", "4"]
    accuracy = example("resnet").main([str(folder), *TINY, *more])
    assert accuracy > 0.8
    out = capsys.readouterr().out
    assert "24 pictures to train on, 9 to judge by" in out
    assert "top-5 1.0000" in out


def test_inception_runs_out_of_parquet(example, tables, tmp_path):
    from daskdl.models import InceptionV1
    from daskdl.nn import load

    file = tmp_path / "m.safetensors"
    more = ["--epochs", "1", "--rate", "0.001", "--save", str(file)]
    example("inception").main([str(tables), *TINY, *more])
    assert isinstance(load(file), InceptionV1)
