"""The messages of the benchmark of streams: utterances, and a process that sends them at a rate."""

from __future__ import annotations

import numpy as np

from ci.kafka import produce

PARTITIONS, WORDS = 8, 5000


def texts(n: int) -> list[bytes]:
    """Return utterances of 5 to 20 words."""
    rng = np.random.default_rng(0)
    return [
        " ".join(f"w{i}" for i in rng.integers(0, WORDS, rng.integers(5, 21))).encode()
        for _ in range(n)
    ]


def send(servers: str, topic: str, rate: float, count: int) -> None:
    """Send ``count`` texts at a rate; run in a separate process."""
    values = texts(2000)
    sent = (values[i % 2000] for i in range(count))
    produce(servers, topic, PARTITIONS, sent, rate, **{"linger.ms": 0})
