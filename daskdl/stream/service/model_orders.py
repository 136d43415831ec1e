"""Model orders: another model by a control topic or by a watched file."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daskdl.errors import DaskdlError, SettingsError
from daskdl.stream.queues.kafka_clients import Brokers, confluent
from daskdl.stream.queues.kafka_source import PATIENCE
from daskdl.stream.worker.model_file import ModelFile

logger = logging.getLogger(__name__)

#: Seconds between two looks.
EVERY = 0.5


class WatchedFile:
    """A local model file that others replace."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._seen = self._now()

    def _now(self) -> tuple[int, int, int] | None:
        try:
            stat = self._path.stat()
        except OSError:  # it is being replaced
            return None
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    def newest(self) -> ModelFile | None:
        """Return the file's model if it was replaced since the last call."""
        now = self._now()
        if now is None or now == self._seen:
            return None
        self._seen = now
        return ModelFile.read(self._path)

    def close(self) -> None:
        """Do nothing."""


class ControlTopic:
    """A topic of JSON messages such as ``{"model": "s3://models/b.safetensors", "name": "b"}``.

    The last usable message counts, also one from before the stream's start: a restarted driver uses
    the model that was in use.
    """

    def __init__(self, brokers: Brokers, topic: str, group: str) -> None:
        self._kafka, self._topic = confluent(), topic
        self._consumer = brokers.client(
            "Consumer", group_id=f"{group}-control", enable_auto_commit=False,
            auto_offset_reset="earliest", isolation_level="read_committed",
        )  # fmt: skip
        try:
            metadata = self._consumer.list_topics(topic, timeout=PATIENCE).topics[topic]
        except self._kafka.KafkaException as error:
            raise brokers.unreachable("control topic", error.args[0].str()) from error
        if metadata.error is not None:
            raise SettingsError(
                f"control topic {topic}: expected a topic of {brokers.servers}, found "
                f"{metadata.error.str()}; make it first"
            )
        begin = self._kafka.OFFSET_BEGINNING
        parts = [self._kafka.TopicPartition(topic, p, begin) for p in metadata.partitions]
        self._consumer.assign(parts)

    def newest(self) -> ModelFile | None:
        """Return the model of the last message since the last call with a readable model.

        Raises the last message's DaskdlError if there are messages but no readable model.
        """
        messages = [m for m in self._consumer.consume(1000, 0.2) if m.error() is None]
        messages.sort(key=lambda m: (m.timestamp()[1], m.offset()), reverse=True)
        errors: list[DaskdlError] = []
        for message in messages:
            try:
                file = ModelFile.read(*_ordered(message.value(), self._topic))
            except DaskdlError as error:
                errors.append(error)
                continue
            for passed in errors:
                logger.warning("the order before it counts: %s", passed)
            return file
        if errors:
            raise errors[0]
        return None

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()


def _ordered(value: bytes | None, topic: str) -> tuple[str, str | None]:
    try:
        order: Any = json.loads(value or b"")
        return str(order["model"]), order.get("name")
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f'control topic {topic}: expected a message such as {{"model": "b.safetensors"}}, '
            f"found {value!r}; send another"
        ) from error


@contextmanager
def following(
    orders: Sequence[WatchedFile | ControlTopic], swap: Callable[[ModelFile], Any]
) -> Iterator[None]:
    """Swap models as ordered, in a thread; the log names unusable ones."""
    ending = threading.Event()

    def follow() -> None:
        while not ending.is_set():
            for source in orders:
                try:
                    file = source.newest()
                    if file is not None:
                        swap(file)
                        logger.info("model %s, sha256 %s", file.name, file.sha256)
                except DaskdlError as error:
                    logger.warning("the model in use goes on: %s", error)
            ending.wait(EVERY)

    thread = threading.Thread(target=follow, name="daskdl-model-orders", daemon=True)
    if orders:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        if orders:
            thread.join(5)
        for source in orders:
            source.close()
