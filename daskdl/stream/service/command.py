"""The work of ``daskdl stream``: a stream from Kafka to Kafka until a signal ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from daskdl.cluster import connect
from daskdl.stream.driver.stream import Stream
from daskdl.stream.queues.kafka_clients import Brokers
from daskdl.stream.queues.kafka_sink import KafkaSink
from daskdl.stream.queues.kafka_source import KafkaSource
from daskdl.stream.service.configuration import Configuration
from daskdl.stream.service.live import shown
from daskdl.stream.service.model_orders import ControlTopic, WatchedFile, following
from daskdl.stream.worker.orders import Limits


def run(configuration: Configuration, progress: bool = True) -> dict[str, Any]:
    """Run a stream until SIGTERM, SIGINT or its end; return its status."""
    c = configuration
    brokers = Brokers(c.brokers, c.kafka)
    topics = [topic.strip() for topic in c.topics.split(",")]
    source = KafkaSource(brokers, topics, c.group, c.start)
    sink = KafkaSink(brokers, c.group, c.exactly_once, create_topics=c.create_topics)
    stream = Stream(
        source,
        sink,
        c.model,
        c.routing(),
        schema=c.schema,
        echo=c.echo,
        limits=Limits(batch=c.batch),
        silence=c.silence,
        stop_within=c.stop_within,
    )
    orders: list[WatchedFile | ControlTopic] = [WatchedFile(c.model)] if c.watch else []
    if c.control is not None:
        orders.append(ControlTopic(brokers, c.control, c.group))
    # Settings, brokers and topics are looked at before a cluster is started for them.
    sink.check(source.partitions(), stream.routes.topics())
    with (
        stopping_by_signals(stream.stop),
        connect(c.cluster, workers=c.workers) as client,
        following(orders, stream.swap),
        shown(progress) as show,
    ):
        stream.run(client, until_end=c.until_end, seconds=c.seconds, watch=show)
    return stream.status.as_dict()


@contextmanager
def stopping_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Stop a stream at SIGTERM and SIGINT; a second signal ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def handle(number: int, frame: Any) -> None:
        came.append(number)
        stop()
        if len(came) > 1:
            raise KeyboardInterrupt

    before = {n: signal.signal(n, handle) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
