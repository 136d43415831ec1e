"""A Kafka broker as a process of its own, for tests, trials and benchmarks on this machine.

It is noida-db, of the extra "peers". It keeps its state by writing it every few seconds, so that a
kill -9 loses messages that it has acknowledged: it is ended by SIGTERM here, or stopped.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Broker:
    """A broker that can be stopped, woken, ended and started again with its data.

    Parameters
    ----------
    folder : path
        For its data; it is there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._process = folder, None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.servers = f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        from noida_db import __file__ as package

        command = Path(package).with_name("noida-db")
        self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
            [
                command, "start", "--only", "kafka", "--host", "127.0.0.1", "--kafka-port",
                str(self.port), "--data-dir", str(self._folder),
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        limit = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if time.monotonic() > limit or self._process.poll() is not None:
                    raise
                time.sleep(0.02)

    def end(self) -> None:
        """End it by SIGTERM, which has it write its state."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            self._process.wait(120)  # it writes its state, on a disk that may be busy
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, such as SIGSTOP, which cuts it off."""
        assert self._process is not None
        self._process.send_signal(number)


@contextmanager
def broker(folder: Path) -> Iterator[Broker]:
    """Give a running broker; it is ended on leaving."""
    made = Broker(folder)
    made.start()
    try:
        yield made
    finally:
        made.end()


def make_topics(servers: str, partitions: int, *topics: str) -> None:
    """Make topics."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(t, partitions) for t in topics]).values():
        made.result(20)


def produce(servers: str, topic: str, partitions: int, values: Iterable[bytes]) -> None:
    """Send values to the partitions in turn, and wait until the broker has them."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
    for i, value in enumerate(values):
        while True:
            try:
                producer.produce(topic, value, partition=i % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    assert not producer.flush(60)


def read_all(
    servers: str, topic: str, committed: bool = True, seconds: float = 60.0
) -> dict[int, list[Any]]:
    """Return all messages of a topic by partition, in order.

    Parameters
    ----------
    servers, topic : str
    committed : bool
        Whether aborted transactions are left out.
    seconds : float
        Until a partition whose end was not reached is an error.
    """
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": "reader", "enable.auto.commit": False,
            "enable.partition.eof": True, "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
    )  # fmt: skip
    numbers = consumer.list_topics(topic, timeout=20).topics[topic].partitions
    consumer.assign([TopicPartition(topic, n, 0) for n in numbers])
    found: dict[int, list[Any]] = {n: [] for n in numbers}
    left, limit = set(numbers), time.monotonic() + seconds
    while left:
        for message in consumer.consume(5000, 0.1):
            if message.error() is None:
                found[message.partition()].append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
        assert time.monotonic() < limit, f"{topic}: the ends of {sorted(left)} were not reached"
    consumer.close()
    return found


def offsets_of(messages: Iterable[Any]) -> list[int]:
    """Return the offset that each answer's key names."""
    return [int(message.key().decode().rpartition("/")[2]) for message in messages]


def answers_of(messages: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the JSON of answers."""
    return [json.loads(message.value()) for message in messages]
