"""Call routing: texts of calls are classified as they arrive on Kafka, and go to a specialist.

Speech recognition puts the text of each call on a topic of Kafka. A stream on Dask workers predicts
the subject, and puts the text on the Kafka topic of its specialist, or of a human if the classifier
is not sure. Speech recognition is simulated: a thread sends texts at a chosen rate.

Data: sentences by topic of the package chatterbot-corpus (pip install chatterbot-corpus), 313 of
eight topics (a classifier gets two in three new ones right); or a CSV with the columns text and
label. With --encoder, the folder of a Hugging Face model, its adapters are trained instead.
One sentence in five is held out from training and sent as a call: of health 1 of 9, of food 2 of
30, of history 2 of 16, so a topic may get no call. A broker is needed, such as
pip install noida-db==0.2.3 and
noida-db start --only kafka --host 127.0.0.1 --kafka-port 9092 --data-dir kafka/
Run: python examples/call_routing.py --brokers 127.0.0.1:9092 --rate 500 --seconds 20 --plot out.png
"""

from __future__ import annotations

import csv
import importlib.util
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import yaml

import daskdl
from daskdl import SampleSet, Trainer, connect, text
from daskdl.console import argument_parser, natural, output, positive, script
from daskdl.data.text import Encode, Vocabulary
from daskdl.errors import DataError, MissingExtraError
from daskdl.metrics import Accuracy
from daskdl.models import TextClassifier
from daskdl.nn import CrossEntropyLoss, Loss, Module, NLLLoss
from daskdl.optim import Adam
from daskdl.stream import Brokers, KafkaSink, KafkaSource, Partition, Routes, Stream, text_metadata
from daskdl.stream.worker.latency import Histogram

TOPICS = "computers", "food", "health", "history", "literature", "money", "movies", "sports"
LENGTH = 32


def sentences(path: Path | None) -> tuple[list[str], list[str]]:
    """Return texts and their labels, from a CSV or from chatterbot-corpus."""
    if path is not None:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if not rows or not {"text", "label"} <= rows[0].keys():
            raise DataError(f"{path}: expected columns text and label, found {list(rows[:1])}")
        return [row["text"] for row in rows], [row["label"] for row in rows]
    spec = importlib.util.find_spec("chatterbot_corpus")
    if spec is None or spec.origin is None:
        raise MissingExtraError(
            "expected chatterbot-corpus or --csv; pip install chatterbot-corpus"
        )
    labels: dict[str, str] = {}  # each sentence once, so that none is trained on and held out
    for topic in TOPICS:
        file = Path(spec.origin).parent / "data" / "english" / f"{topic}.yml"
        for conversation in yaml.safe_load(file.read_text("utf-8"))["conversations"]:
            for sentence in conversation:
                labels.setdefault(str(sentence), topic)
    return list(labels), list(labels.values())


def train(
    texts: list[str], labels: list[str], path: Path, epochs: int, seed: int, encoder: Any = None
) -> list[str]:
    """Train a text classifier, write its file, and return the held-out texts."""
    names = sorted(set(labels))
    order = np.random.default_rng(seed).permutation(len(texts))
    y = np.array([names.index(label) for label in labels], np.int64)
    held_out = order[: len(order) // 5]
    rest = order[len(order) // 5 :]
    encode: Any
    if encoder is None:
        vocabulary = Vocabulary.build([texts[i] for i in rest])
        encode, metadata = Encode(vocabulary, LENGTH), text_metadata(vocabulary, names, LENGTH)
        network: Module = TextClassifier(len(vocabulary), len(names), encoder="cnn", seed=seed)
        loss: Loss = NLLLoss()
    else:
        model = text.lora(text.load(encoder, "classify", labels=names), rank=16)
        encode, metadata = text.Tokens(model.tokenizer), model.metadata()
        network, loss = model.network, CrossEntropyLoss()

    def samples(which: Any) -> SampleSet:
        chosen = np.array([texts[i] for i in which], object)
        return SampleSet.from_arrays(x=chosen, y=y[which], partitions=2).map_batches(encode)

    trainer = Trainer(network, loss, Adam(1e-3), seed, [Accuracy()])
    history = trainer.fit(
        samples(rest), epochs=epochs, batch_size=64, validation=samples(held_out), progress=False
    )
    print(history.to_frame(epochs=True).tail(1).to_string())
    if encoder is not None:
        network = text.merged(model).network
    daskdl.save(network, path, metadata)
    return [texts[i] for i in held_out]


def speech_recognition(brokers: str, topic: str, texts: list[str], count: int, rate: int) -> None:
    """Simulate speech recognition: put texts on a topic, so many a second."""
    from confluent_kafka import Producer

    producer, began = Producer({"bootstrap.servers": brokers, "linger.ms": 0}), time.monotonic()
    for i in range(count):
        time.sleep(max(0.0, began + i / rate - time.monotonic()))
        call = {"call": i, "text": texts[i % len(texts)]}
        producer.produce(topic, json.dumps(call), key=str(i % 1000))
        producer.poll(0)
    producer.flush()


class Watch:
    """Starts the calls when all workers read, records latencies, and ends the stream after them."""

    def __init__(self, calls: Thread, count: int) -> None:
        self.calls, self.count, self.latest_call = calls, count, 0.0
        self.latencies: list[tuple[float, float, float]] = []  # time (s), p50 and p99 (ms) since
        self.before = Histogram()

    def __call__(self, stream: Stream) -> None:
        """Look at a stream, several times a second."""
        now, workers = time.monotonic(), stream.status.workers.values()
        idle = bool(workers) and all(worker.ended for worker in workers)
        if self.calls.ident is None and idle:
            self.calls.start()
        if self.calls.ident is None or self.calls.is_alive():
            self.latest_call = now
        elif stream.status.records >= self.count or (idle and now - self.latest_call > 10):
            stream.stop()
        if not self.latencies or now - self.latencies[-1][0] >= 1:
            latest, lately = stream.status.latency(), Histogram()
            lately.counts = np.maximum(latest.counts - self.before.counts, 0)
            self.before = latest
            if self.latencies or latest.counts.any():
                p50, p99 = lately.percentiles(50, 99)
                self.latencies.append((now, p50, p99))

    def plot(self, path: Path) -> None:
        """Draw latency over time."""
        from matplotlib.figure import Figure

        seconds, p50, p99 = np.transpose(self.latencies)
        figure = Figure(figsize=(7, 3), layout="constrained")
        axes = figure.add_subplot()
        axes.plot(seconds - seconds[0], p50, label="p50")
        axes.plot(seconds - seconds[0], p99, label="p99")
        axes.set(xlabel="time since the first answer (s)", ylabel="latency (ms)", yscale="log")
        axes.legend()
        figure.savefig(path, format="png")


def routed(brokers: str, topics: list[str]) -> Counter[str]:
    """Return the number of answers on each topic."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": brokers, "group.id": "count", "enable.partition.eof": True,
         "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    )  # fmt: skip
    places = [(t, p) for t in topics for p in consumer.list_topics(t).topics[t].partitions]
    consumer.assign([TopicPartition(t, p, 0) for t, p in places])
    unread, counts = set(places), Counter[str](dict.fromkeys(topics, 0))
    while unread:
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                counts[message.topic()] += 1
            elif message.error().code() == KafkaError._PARTITION_EOF:
                unread.discard((message.topic(), message.partition()))
    consumer.close()
    return counts


def main(arguments: list[str] | None = None) -> Counter[str]:
    """Train, stream, and return the number of calls to each specialist."""
    args = parse(arguments)
    texts, labels = sentences(args.csv)
    specialists = {name: f"{args.group}-{name}" for name in sorted(set(labels))}
    routes = Routes(
        f"{args.group}-rest", f"{args.group}-dead-letter", specialists, args.sure,
        f"{args.group}-human",
    )  # fmt: skip
    brokers, topic, count = (
        Brokers(args.brokers),
        f"{args.group}-calls",
        args.rate * args.seconds,
    )
    sink = KafkaSink(brokers, args.group, exactly_once=True, create_topics=True)
    sink.check([Partition(topic, p) for p in range(4)], [topic, *routes.topics()])
    before = routed(args.brokers, routes.topics())
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "calls.safetensors"
        spoken = train(texts, labels, model, args.epochs, args.seed, args.encoder)
        stream = Stream(
            KafkaSource(brokers, [topic], args.group), sink, model, routes,
            schema="json:text", echo=True,
        )  # fmt: skip
    said = args.brokers, topic, spoken, count, args.rate
    watch = Watch(Thread(target=speech_recognition, args=said, daemon=True), count)
    with connect("local", workers=args.workers) as client:
        stream.run(client, watch=watch)
    counts = routed(args.brokers, routes.topics())
    counts.subtract(before)  # of earlier runs
    print(json.dumps(stream.status.as_dict()["latency_ms"]))
    known = Counter(specialists[label] for label in labels)
    for topic, n in counts.items():
        of = f" ({known[topic]} sentences in the data)" if topic in known else ""
        print(f"{topic}: {n} calls{of}")
    if args.plot:
        watch.plot(args.plot)
    return counts


def parse(arguments: list[str] | None) -> Any:
    """Return the options of the command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--brokers", default="127.0.0.1:9092", help="of Kafka")
    parser.add_argument("--encoder", type=Path, help="folder of an encoder to fine-tune")
    parser.add_argument("--csv", type=Path, help="texts and labels, instead of chatterbot-corpus")
    parser.add_argument("--rate", type=positive, default=200, help="calls a second")
    parser.add_argument("--seconds", type=positive, default=20, help="duration of the calls")
    parser.add_argument("--sure", type=float, default=0.5, help="below it a human gets the call")
    parser.add_argument("--epochs", type=positive, default=30)
    parser.add_argument("--workers", type=positive, default=2)
    parser.add_argument("--group", default="routing", help="prefix of all topics")
    parser.add_argument("--plot", type=output, help="PNG for latency over time")
    parser.add_argument("--seed", type=natural, default=0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    script(main)
