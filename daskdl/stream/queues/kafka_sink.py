"""Kafka sink: answers keyed by their record's place, maybe in one transaction with the offsets."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from daskdl.errors import SettingsError
from daskdl.stream.queues.kafka_clients import Brokers, confluent
from daskdl.stream.queues.kafka_source import PATIENCE, KafkaReader
from daskdl.stream.queues.protocols import FencedError, Reader, RolledBackError
from daskdl.stream.queues.records import Output, Partition

logger = logging.getLogger(__name__)


class KafkaSink:
    """Topics of a Kafka cluster; an answer's key is ``topic/partition/offset`` of its record.

    The answers to a partition go to one partition of each topic, in the order of their records.

    Parameters
    ----------
    brokers : Brokers
    group : str
        First part of the transactional ids; a slot's is ``<group>-<slot>``.
    exactly_once : bool
        Whether answers, dead letters and offsets are committed in one transaction. The source must
        have the same brokers.
    transaction_timeout : float
        Seconds after which the broker ends a lost worker's transaction, if the driver was lost too;
        the driver itself ends it at once.
    create_topics : bool
        Whether to create missing topics, with as many partitions as the source has.

    Examples
    --------
    >>> from daskdl.stream import Brokers
    >>> KafkaSink(Brokers("kafka:9093"), group="routing", exactly_once=True).exactly_once
    True
    """

    def __init__(
        self,
        brokers: Brokers,
        group: str = "daskdl",
        exactly_once: bool = False,
        transaction_timeout: float = 30.0,
        create_topics: bool = False,
    ) -> None:
        self.brokers, self.group, self.exactly_once = brokers, group, exactly_once
        self.transaction_timeout, self.create_topics = transaction_timeout, create_topics

    def check(self, partitions: Sequence[Partition], topics: Sequence[str]) -> None:
        """Raise a SettingsError when outputs of these topics cannot be written."""
        kafka, admin = confluent(), self.brokers.client("AdminClient")
        absent = []
        try:
            there = admin.list_topics(timeout=PATIENCE).topics if self.create_topics else {}
            for topic in dict.fromkeys(topics):
                if topic in there:
                    continue
                if self.create_topics:
                    absent.append(topic)
                    continue
                # One by one, since a broker may make the topic that is asked for by its name.
                metadata = admin.list_topics(topic, timeout=PATIENCE).topics[topic]
                if metadata.error is not None or not metadata.partitions:
                    absent.append(topic)
        except kafka.KafkaException as error:
            raise self.brokers.unreachable("sink", error.args[0].str()) from error
        if absent and not self.create_topics:
            raise SettingsError(
                f"sink, topic {absent[0]}: expected a topic of {self.brokers.servers}, found none "
                "of this name; make it first, or say --create-topics"
            )
        from confluent_kafka.admin import NewTopic

        new = [NewTopic(topic, num_partitions=len(partitions)) for topic in absent]
        for topic, made in (admin.create_topics(new) if new else {}).items():
            try:
                made.result(PATIENCE)
            except kafka.KafkaException as error:
                raise SettingsError(
                    f"sink, topic {topic}: expected that it can be made, found "
                    f"{error.args[0].str()}; make it by hand"
                ) from error

    def _producer(self, slot: int, **more: Any) -> Any:
        milliseconds = int(self.transaction_timeout * 1000)
        if self.exactly_once:
            more |= {
                "transactional_id": f"{self.group}-{slot}",
                "transaction_timeout_ms": milliseconds,
                "message_timeout_ms": milliseconds,
            }
        return self.brokers.client(
            "Producer",
            enable_idempotence=True,
            linger_ms=1,
            delivery_report_only_error=True,
            retry_backoff_ms=20,
            reconnect_backoff_max_ms=1000,
            **more,
        )

    def fence(self, slot: int) -> None:
        """End a former writer's open transaction in this slot; it can then commit no more."""
        if self.exactly_once:
            _patiently(self._producer(slot).init_transactions, PATIENCE)

    def writer(self, slot: int) -> KafkaWriter:
        """Return the writer of a slot; a slot has one writer at a time."""
        failed: list[str] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                failed.append(error.str())

        producer = self._producer(slot, on_delivery=delivered)
        if self.exactly_once:
            _patiently(producer.init_transactions, PATIENCE)
        return KafkaWriter(producer, failed, self.exactly_once, 2 * self.transaction_timeout)


class KafkaWriter:
    """Produces outputs to Kafka.

    The producer adds to ``failed`` why a message was not delivered. ``patience`` is the seconds
    that a commit may take while brokers do not answer.
    """

    def __init__(
        self, producer: Any, failed: list[str], exactly_once: bool, patience: float
    ) -> None:
        self._producer, self._failed, self._exactly_once = producer, failed, exactly_once
        self._patience, self._open, self._kafka = patience, False, confluent()
        self._counts: dict[str, int] = {}
        self._given_up = False

    def _calls(self, call: Callable[[float], Any]) -> Any:
        return _patiently(call, self._patience, lambda: self._given_up)

    def write(self, outputs: Sequence[Output]) -> None:
        """Produce outputs of a batch, in their order."""
        self._begin()
        produce = self._producer.produce
        for record, topic, value, headers in outputs:
            partition = record.partition.number % (self._counts.get(topic) or self._count(topic))
            key = f"{record.partition.topic}/{record.partition.number}/{record.offset}"
            more = {"headers": list(headers)} if headers else {}
            while True:
                try:
                    produce(topic, value, key, partition, **more)
                    break
                except BufferError:  # more than librdkafka wants to hold: wait for the broker
                    if self._given_up:
                        raise RolledBackError("the brokers have not taken it in time") from None
                    self._producer.poll(0.1)
                except self._kafka.KafkaException as error:
                    self._fail(error)

    def _count(self, topic: str) -> int:
        listed = self._calls(lambda wait: self._producer.list_topics(topic, timeout=wait))
        self._counts[topic] = max(1, len(listed.topics[topic].partitions))
        return self._counts[topic]

    def _begin(self) -> None:
        if self._exactly_once and not self._open:
            try:
                self._producer.begin_transaction()
            except self._kafka.KafkaException as error:
                self._fail(error)
            self._open = True

    def commit(self, reader: Reader, positions: Mapping[Partition, int]) -> None:
        """Return when all outputs are safe and the offsets are committed."""
        kafka_reader = cast(KafkaReader, reader)
        if not self._exactly_once:
            self._flush()
            self._calls(lambda _: reader.commit(positions))
            return
        self._begin()
        offsets, group = kafka_reader.offsets(positions), kafka_reader.metadata()
        try:
            send = self._producer.send_offsets_to_transaction
            self._calls(lambda wait: send(offsets, group, wait))
            self._calls(self._producer.commit_transaction)
        except self._kafka.KafkaException as error:
            self._fail(error)
        self._open = False
        self._failed.clear()

    def _flush(self) -> None:
        limit = time.monotonic() + self._patience
        while self._producer.flush(1.0) and time.monotonic() < limit and not self._given_up:
            pass
        undelivered = len(self._producer)
        if self._failed or undelivered:
            reasons, self._failed[:] = [*self._failed, "not delivered in time"], []
            self._producer.purge()
            self._producer.flush(1.0)
            self._failed.clear()
            raise RolledBackError(f"{undelivered or len(reasons) - 1} answers: {reasons[0]}")

    def _fail(self, error: Any) -> None:
        """End the transaction, and raise the meaning of a producer's error."""
        why = error.args[0]
        if why.fatal() or why.code() == self._kafka.KafkaError._FENCED:
            raise FencedError(why.str()) from error
        if not self._exactly_once:
            raise error
        try:
            self._calls(self._producer.abort_transaction)
        except self._kafka.KafkaException as worse:
            raise FencedError(worse.args[0].str()) from worse
        self._open = False
        self._failed.clear()
        raise RolledBackError(why.str()) from error

    def give_up(self) -> None:
        """End the waits of another thread for the brokers, with an error."""
        self._given_up = True

    def close(self) -> None:
        """Drop what was not committed."""
        if self._exactly_once and self._open:
            try:
                self._producer.abort_transaction(2)
            except self._kafka.KafkaException as error:
                logger.debug("a transaction was left to the broker: %s", error)
        self._producer.purge()
        with suppress(self._kafka.KafkaException):  # of one that is fenced
            self._producer.flush(1.0)


def _patiently(
    call: Callable[[float], Any], patience: float, given_up: Callable[[], bool] = lambda: False
) -> Any:
    """Call with a timeout, repeatedly if the error may pass, for ``patience`` or until given up.

    The timeout is a second, so that a given-up call ends soon.
    """
    kafka, limit = confluent(), time.monotonic() + patience
    while True:
        remaining = limit - time.monotonic()
        try:
            return call(min(1.0, max(remaining, 0.1)))
        except kafka.KafkaException as error:
            why = error.args[0]
            passing = why.retriable() or why.code() in (
                kafka.KafkaError._TRANSPORT,
                kafka.KafkaError._TIMED_OUT,
                kafka.KafkaError._ALL_BROKERS_DOWN,
            )
            if not passing or why.fatal() or remaining <= 0 or given_up():
                raise
            time.sleep(0.05)
