"""Peers of a live stream: a loop of confluent-kafka and PyTorch, and streamz on Dask workers."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.data.text import Encode, Tokenizer, Vocabulary
from daskdl.nn.core.modelfile import load, read_metadata
from daskdl.stream.worker.latency import Histogram

BATCH = 1024


class TorchClassifier:
    """The text model of a file, with the same weights in PyTorch, on batches of bytes.

    Parameters
    ----------
    path : path
        File of a :class:`daskdl.models.TextClassifier` with the encoder "cnn".
    """

    def __init__(self, path: Path) -> None:
        import torch

        torch.set_num_threads(1)
        import daskdl.models  # noqa: F401

        classifier, metadata = load(path), read_metadata(path)
        weights = {n: torch.from_numpy(p.data.copy()) for n, p in classifier.named_parameters()}
        vocabulary = Vocabulary(
            metadata["vocabulary"]["words"], Tokenizer(**metadata["vocabulary"]["tokenizer"])
        )
        self._encode, self._labels = Encode(vocabulary, metadata["length"]), metadata["labels"]
        self._weights, self._torch = weights, torch
        self._tail = f', "model": "{path.stem}"}}'

    def scores(self, ids: Any) -> Any:
        """Return log-probabilities (n, classes) of ids (n, words)."""
        torch, w = self._torch, self._weights
        lengths = torch.from_numpy((ids != 0).sum(1))
        ids = torch.from_numpy(ids[:, : int(lengths.max())].astype(np.int64))
        with torch.inference_mode():
            x = torch.nn.functional.embedding(ids, w["embedding.weight"]).transpose(1, 2)
            kernel = w["encoder.weight"].transpose(1, 2)
            y = torch.nn.functional.conv1d(x, kernel, w["encoder.bias"], padding="same").relu()
            y = y * (torch.arange(ids.shape[1]) < lengths[:, None])[:, None]
            y = torch.nn.functional.linear(y.amax(2), w["hidden.weight"], w["hidden.bias"]).relu()
            y = torch.nn.functional.linear(y, w["head.weight"], w["head.bias"])
            return torch.log_softmax(y, 1)

    def __call__(self, values: list[bytes]) -> list[bytes]:
        """Return the JSON of answers."""
        ids = self._encode({"x": [v.decode() for v in values]})["x"]
        top, best = self.scores(ids).exp().max(1)
        return [
            f'{{"label": "{self._labels[b]}", "probability": {p:.6f}{self._tail}'.encode()
            for b, p in zip(best.tolist(), top.tolist(), strict=True)
        ]


def plain_loop(
    servers: str, topic: str, out: str, model: Path, ending: threading.Event, latency: Histogram
) -> None:
    """Consume, predict, produce and commit in one process, at least once."""
    from confluent_kafka import Consumer, Producer

    predict = TorchClassifier(model)
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": f"{out}-loop", "auto.offset.reset": "earliest",
         "enable.auto.commit": False}
    )  # fmt: skip
    from confluent_kafka import TopicPartition

    numbers = consumer.list_topics(topic).topics[topic].partitions
    consumer.assign([TopicPartition(topic, n, 0) for n in numbers])
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 1, "enable.idempotence": True})
    while not ending.is_set():
        first = consumer.poll(0.05)
        if first is None:
            continue
        messages = [m for m in [first, *consumer.consume(BATCH - 1, 0)] if m.error() is None]
        if not messages:
            continue
        answers = predict([m.value() for m in messages])
        for message, answer in zip(messages, answers, strict=True):
            key = f"{message.topic()}/{message.partition()}/{message.offset()}"
            producer.produce(out, answer, key, message.partition())
        producer.flush()
        consumer.commit(asynchronous=True)
        now = time.time() * 1000
        latency.add(now - np.array([m.timestamp()[1] for m in messages], float))
    consumer.close()


def loop(servers: str, topic: str, out: str, model: Path, n: int) -> None:
    """Run the simple loop until it has answered ``n`` messages; run in a separate process."""
    answered, ending = Histogram(), threading.Event()

    def watch() -> None:
        while answered.counts.sum() < n:
            ending.wait(0.05)
        ending.set()

    threading.Thread(target=watch, daemon=True).start()
    plain_loop(servers, topic, out, model, ending, answered)


_cache: dict[str, Any] = {}


def answer_batch(messages: list[Any], servers: str, out: str, model: str) -> int:
    """Predict and produce a batch: the function that streamz maps over batches, on a worker."""
    from confluent_kafka import Producer

    if "predict" not in _cache:
        _cache["predict"] = TorchClassifier(Path(model))
        _cache["producer"] = Producer({"bootstrap.servers": servers, "linger.ms": 1})
    values = [m["value"] if isinstance(m, dict) else m for m in messages]
    if values:
        for answer in _cache["predict"](values):
            _cache["producer"].produce(out, answer)
        _cache["producer"].flush()
    return len(values)


def streamz_drain(client: Any, servers: str, topic: str, out: str, model: Path, n: int) -> float:
    """Return the seconds in which streamz answers ``n`` messages on the client's workers."""
    from streamz import Stream

    parameters = {
        "bootstrap.servers": servers, "group.id": f"{out}-streamz", "auto.offset.reset": "earliest"
    }  # fmt: skip
    numbers: list[int] = []
    source = Stream.from_kafka_batched(
        topic, parameters, poll_interval="10ms", npartitions=8, max_batch_size=BATCH, dask=True,
        asynchronous=False,
    )  # fmt: skip
    times: list[float] = []

    def done(count: int) -> None:
        numbers.append(count)
        times.append(time.monotonic())

    source.map(answer_batch, servers=servers, out=out, model=str(model)).buffer(8).gather().sink(
        done
    )
    source.start()
    limit = time.monotonic() + 120
    while sum(numbers) < n and time.monotonic() < limit:
        time.sleep(0.05)
    source.stop()
    if sum(numbers) < n:
        raise TimeoutError(f"{sum(numbers)} of {n}")
    return times[-1] - times[0]
