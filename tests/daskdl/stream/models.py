"""Small models of texts, and the streams that use them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from daskdl.data.text import Vocabulary
from daskdl.models import TextClassifier
from daskdl.nn import Linear, ReLU, Sequential
from daskdl.nn.core.modelfile import save
from daskdl.stream import ModelFile, text_metadata

LABELS = ["money", "health", "sports"]


def text_model(folder: Path, name: str = "first", seed: int = 0) -> ModelFile:
    """Return a file of a classifier of the words w0 to w19."""
    vocabulary = Vocabulary([f"w{i}" for i in range(20)])
    model = TextClassifier(
        len(vocabulary), len(LABELS), 8, encoder="cnn", channels=8, hidden=8, seed=seed
    )
    path = folder / f"{name}.safetensors"
    save(model, path, text_metadata(vocabulary, LABELS, length=16))
    return ModelFile.read(path)


def number_model(folder: Path, inputs: int = 3) -> ModelFile:
    """Return a file of a network of numbers, whose results are scores."""
    model = Sequential(Linear(inputs, 4, seed=1), ReLU(), Linear(4, 2, seed=2))
    path = folder / f"numbers-{inputs}.safetensors"
    save(model, path, {"labels": ["no", "yes"]})
    return ModelFile.read(path)


def utterances(n: int, seed: int = 0) -> list[bytes]:
    """Return texts of five words."""
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{i}" for i in row).encode() for row in rng.integers(0, 20, (n, 5))]
