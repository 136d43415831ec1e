"""Small models of texts and numbers, and the streams that use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ci.kafka import make_topics, offsets_of, produce, read_all
from daskdl.data.text import Vocabulary
from daskdl.models import TextClassifier
from daskdl.nn import Linear, ReLU, Sequential
from daskdl.nn.core.modelfile import save
from daskdl.stream import Brokers, KafkaSink, KafkaSource, ModelFile, Routes, Stream, text_metadata

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


def stream_of(
    brokers: Brokers, name: str, model: ModelFile, exactly_once: bool = False, **options: Any
) -> Stream:
    """Return a stream from a topic to the topics of its answers and dead letters."""
    sink = KafkaSink(brokers, name, exactly_once)
    routes = Routes(f"{name}-out", f"{name}-dead")
    return Stream(KafkaSource(brokers, [name], name), sink, model, routes, **options)


def begun(real: Any, name: str, records: int) -> Brokers:
    """Make a stream's topics at a broker, with so many utterances to answer."""
    make_topics(real.servers, 4, name, f"{name}-out", f"{name}-dead")
    produce(real.servers, name, 4, utterances(records))
    return Brokers(real.servers)


def once_and_in_order(servers: str, name: str, records: int) -> None:
    """Check that each of so many records, in four partitions, was answered once, in order."""
    for number, messages in read_all(servers, f"{name}-out").items():
        assert offsets_of(messages) == list(range(len(range(number, records, 4))))
