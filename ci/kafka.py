"""A Kafka broker in a separate process, and a proxy before it, for tests, trials and benchmarks.

The broker is noida-db, of the extra "peers". It writes its state every few seconds, so a kill -9
would lose messages that it has acknowledged: here SIGTERM ends it, or SIGSTOP stops it. The proxy
drops connections on request, and can speak TLS. A broker sends clients its address, and they would
then bypass the proxy: so the proxy replaces the port in the broker's answers by its own, which does
not change their length.
"""

from __future__ import annotations

import json
import math
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


class Broker:
    """A broker that can be stopped, woken, ended and started again with its data.

    Parameters
    ----------
    folder : path
        Existing folder for its data.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._process = folder, None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.servers = f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the broker, and wait until it takes connections."""
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
        """End the broker by SIGTERM, so that it writes its state."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            self._process.wait(120)  # the disk may be busy
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the broker, such as SIGSTOP."""
        assert self._process is not None
        self._process.send_signal(number)


@contextmanager
def broker(folder: Path) -> Iterator[Broker]:
    """Run a broker in a context."""
    made = Broker(folder)
    made.start()
    try:
        yield made
    finally:
        made.end()


def make_topics(servers: str, partitions: int, *topics: str) -> None:
    """Make topics with a number of partitions each."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(t, partitions) for t in topics]).values():
        made.result(20)


def produce(
    servers: str, topic: str, partitions: int, values: Iterable[bytes], rate: float = math.inf,
    delivered: Callable[[Any, Any], None] | None = None, **settings: Any,
) -> None:  # fmt: skip
    """Send values to the partitions in turn, and wait until the broker has them.

    Parameters
    ----------
    servers, topic, partitions, values
    rate : float
        Largest number of values a second.
    delivered : callable, optional
        Called with the error, or None, and the message of each value.
    **settings
        Of the producer.
    """
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, **settings})
    began = time.monotonic()
    for i, value in enumerate(values):
        ahead = began + i / rate - time.monotonic()
        if ahead > 0.001:
            producer.poll(0)
            time.sleep(ahead)
        while True:
            try:
                producer.produce(topic, value, partition=i % partitions, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
    assert not producer.flush(120)


def read_all(servers: str, topic: str) -> dict[int, list[Any]]:
    """Return all messages of a topic by partition, in order, without aborted transactions."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": "reader", "enable.auto.commit": False,
            "enable.partition.eof": True, "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )  # fmt: skip
    numbers = consumer.list_topics(topic, timeout=20).topics[topic].partitions
    consumer.assign([TopicPartition(topic, n, 0) for n in numbers])
    messages: dict[int, list[Any]] = {n: [] for n in numbers}
    unread, limit = set(numbers), time.monotonic() + 60
    while unread:
        for message in consumer.consume(5000, 0.1):
            if message.error() is None:
                messages[message.partition()].append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                unread.discard(message.partition())
        assert time.monotonic() < limit, f"{topic}: the ends of {sorted(unread)} were not reached"
    consumer.close()
    return messages


def offsets_of(messages: Iterable[Any]) -> list[int]:
    """Return the offset in the key of each answer."""
    return [int(message.key().decode().rpartition("/")[2]) for message in messages]


def answers_of(messages: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the parsed JSON of answers."""
    return [json.loads(message.value()) for message in messages]


HOST = "127.0.0.1"


class Proxy:
    """A server on the loopback interface that forwards everything to a broker's port.

    Parameters
    ----------
    target : int
        Port of the broker.
    tls : ssl.SSLContext, optional
        With the certificate for clients; the connection to the broker is not encrypted.
    """

    def __init__(self, target: int, tls: ssl.SSLContext | None = None) -> None:
        self._target, self._tls = target, tls
        self._server = socket.create_server((HOST, 0))
        self.port = self._server.getsockname()[1]
        self.servers = f"{HOST}:{self.port}"
        self._lock, self._open = threading.Lock(), set[socket.socket]()
        #: Connections accepted and cut, and bytes in each direction.
        self.taken, self.dropped, self.bytes = 0, 0, [0, 0]
        #: Whether new connections are closed at once.
        self.refuses = False
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def drop(self) -> int:
        """Cut all connections of clients at once; return their number."""
        with self._lock:
            sockets, self._open = self._open, set()
        for end in sockets:
            with suppress(OSError):  # a reset, as from a firewall that forgets
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
        self.dropped += len(sockets) // 2
        return len(sockets) // 2

    def close(self) -> None:
        """Accept no more connections, and cut the open ones."""
        self._server.close()
        self.drop()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with suppress(OSError):
            if self.refuses:
                near.close()
                return
            if self._tls is not None:
                near = self._tls.wrap_socket(near, server_side=True)
            with near:  # closed, too, when the broker refuses
                far = socket.create_connection((HOST, self._target), 10)
                far.settimeout(None)
                with self._lock:
                    self._open |= {near, far}
                    self.taken += 1
                threading.Thread(target=self._requests, args=(near, far), daemon=True).start()
                self._answers(near, far)

    def _requests(self, near: socket.socket, far: socket.socket) -> None:
        with self._both(near, far):
            while data := near.recv(1 << 16):
                self.bytes[0] += len(data)
                far.sendall(data)

    def _answers(self, near: socket.socket, far: socket.socket) -> None:
        ours, theirs = (HOST.encode() + struct.pack(">i", p) for p in (self.port, self._target))
        with self._both(near, far), far.makefile("rb") as stream:
            while size := stream.read(4):
                answer = stream.read(struct.unpack(">i", size)[0])
                self.bytes[1] += len(answer)
                near.sendall(size + answer.replace(theirs, ours))

    @contextmanager
    def _both(self, near: socket.socket, far: socket.socket) -> Iterator[None]:
        """Close both sockets when one has ended."""
        with suppress(OSError, ValueError, struct.error):
            yield
        with self._lock:
            self._open -= {near, far}
        for end in (near, far):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
