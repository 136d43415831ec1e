"""Live streams: messages/s and latencies, against a simple loop and streamz, in one run.

Usage: python -m ci.bench.stream [--messages 60000] [--seconds 8] [--soak 0]

A broker runs on the same machine. Peak: answers a second to waiting messages, by the broker's times
of the first and last answer. Latency: from the broker's time of a message to its committed answer,
at shares of the stream's peak. Soak: resident memory, threads and file descriptors of the workers
over that many seconds at half of the peak.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ci.bench.stream.messages import PARTITIONS, WORDS, send, texts
from ci.bench.stream.peers import loop, streamz_drain
from ci.kafka import broker, make_topics, produce, read_all
from daskdl.cluster import connect
from daskdl.data.text import Vocabulary
from daskdl.models import TextClassifier
from daskdl.nn.core.modelfile import save
from daskdl.stream import Brokers, KafkaSink, KafkaSource, Routes, Stream, text_metadata
from daskdl.stream.worker.latency import Histogram

LENGTH, CLASSES = 32, 10
SHARES = 0.25, 0.5, 0.75, 0.9
SPAWN = multiprocessing.get_context("spawn")


def model_file(folder: Path) -> Path:
    """Write a text classifier (100 features, 128 channels, windows of 5 words); return its path."""
    vocabulary = Vocabulary([f"w{i}" for i in range(WORDS)])
    model = TextClassifier(len(vocabulary), CLASSES, encoder="cnn")
    path = folder / "classifier.safetensors"
    save(model, path, text_metadata(vocabulary, [f"c{i}" for i in range(CLASSES)], LENGTH))
    return path


def answered_per_second(servers: str, topic: str) -> float:
    """Return answers per second, by the broker's times of the first and last answer."""
    stamps = [m.timestamp()[1] for ms in read_all(servers, topic).values() for m in ms]
    return (len(stamps) - 1) * 1000 / max(1, max(stamps) - min(stamps))


def ours(
    client: Any, servers: str, name: str, model: Path, exactly_once: bool, rate: float = 0.0,
    seconds: float = 0.0, soak: list[dict[str, float]] | None = None,
) -> Histogram:  # fmt: skip
    """Answer waiting messages, then those of a sender if there is a rate; return its latencies."""
    brokers, sending = Brokers(servers), list[Any]()
    warm, checked = Histogram(), [0.0]

    def watch(stream: Stream) -> None:
        workers = stream.status.workers
        read = sum(len(r.positions) for r in workers.values())
        if not sending and read == PARTITIONS and all(r.ended for r in workers.values()):
            warm.counts += stream.status.latency().counts
            put = servers, name, rate, int(rate * seconds)
            sending.append(SPAWN.Process(target=send, args=put))
            sending[0].start()
        if sending and not sending[0].is_alive() and all(r.ended for r in workers.values()):
            stream.stop()
        if soak is not None and time.monotonic() - checked[0] > 5:
            checked[0] = time.monotonic()
            soak.append(resources(client))

    stream = Stream(
        KafkaSource(brokers, [name], f"{name}-{exactly_once}"),
        KafkaSink(brokers, f"{name}-{exactly_once}", exactly_once),
        model, Routes(f"{name}-{exactly_once}", f"{name}-dead"),
    )  # fmt: skip
    drain = rate == 0
    stream.run(client, until_end=drain, seconds=240 + seconds, watch=None if drain else watch)
    latency = stream.status.latency()
    latency.counts -= warm.counts
    return latency


def resources(client: Any) -> dict[str, float]:
    """Return the maxima over workers of resident megabytes, threads and file descriptors."""

    def measure() -> tuple[float, int, int]:
        import psutil

        me = psutil.Process()
        return me.memory_info().rss / 1e6, me.num_threads(), me.num_fds()

    usage = np.array(list(client.run(measure).values()))
    return dict(zip(("MB", "threads", "descriptors"), usage.max(0).tolist(), strict=True))


def main(arguments: list[str] | None = None) -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=60_000)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--soak", type=float, default=0)
    args = parser.parse_args(arguments)
    result: dict[str, Any] = {"cores": os.cpu_count(), "messages": args.messages}
    with (
        tempfile.TemporaryDirectory() as name,
        broker(Path(name)) as kafka,
        connect("local", workers=2) as client,
    ):
        model, servers, n = model_file(Path(name)), kafka.servers, args.messages
        rates = {share: f"rate{int(share * 100)}" for share in SHARES}
        ends = "", "-False", "-True", "-dead"
        topics = (f"{t}{end}" for t in ("warm", "peak", "soak", *rates.values()) for end in ends)
        make_topics(servers, PARTITIONS, "loop", "streamz", *topics)
        produce(servers, "warm", PARTITIONS, texts(2000))
        ours(client, servers, "warm", model, False)  # compiles kernels, once for this processor
        values = texts(5000)
        produce(servers, "peak", PARTITIONS, (values[i % 5000] for i in range(n)))
        peak = {}
        for once in False, True:
            ours(client, servers, "peak", model, once)
            peak[once] = answered_per_second(servers, f"peak-{once}")
        looping = SPAWN.Process(target=loop, args=(servers, "peak", "loop", model, n))
        looping.start()
        looping.join()
        simple = answered_per_second(servers, "loop")
        result["peak"] = {
            "at_least_once": round(peak[False]), "exactly_once": round(peak[True]),
            "plain_loop": round(simple), "ratio": round(peak[False] / simple, 2),
            "ratio_exactly_once": round(peak[True] / simple, 2),
        }  # fmt: skip
        print(json.dumps(result), file=sys.stderr)
        for once in False, True:
            for share, topic in rates.items():
                delay = ours(client, servers, topic, model, once, share * peak[once], args.seconds)
                p50, p95, p99 = delay.percentiles(50, 95, 99)
                result.setdefault(f"latency_ms_exactly_once_{once}", {})[share] = {
                    "p50": round(p50, 1), "p95": round(p95, 1), "p99": round(p99, 1),
                    "messages": int(delay.counts.sum()),
                }  # fmt: skip
        if args.soak:
            soak: list[dict[str, float]] = []
            ours(client, servers, "soak", model, True, 0.5 * peak[True], args.soak, soak)
            tenth = max(1, len(soak) // 10)
            result["soak"] = {"seconds": args.soak, "after_a_tenth": soak[tenth], "end": soak[-1]}
        # streamz comes last, since its consumers go on in the workers.
        try:
            result["peak"]["streamz"] = round(
                n / streamz_drain(client, servers, "peak", "streamz", model, n)
            )
        except Exception as error:  # a peer's error is reported
            result["peak"]["streamz"] = f"{type(error).__name__}: {error}"
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
