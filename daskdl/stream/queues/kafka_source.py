"""Kafka source: topics read by assignment, from committed offsets, past transaction markers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from daskdl.errors import SettingsError
from daskdl.stream.queues.kafka_clients import Brokers, confluent
from daskdl.stream.queues.protocols import Places, Source
from daskdl.stream.queues.records import Partition, Record

logger = logging.getLogger(__name__)

#: Seconds until a broker that does not answer the driver is an error.
PATIENCE = 30.0
#: Seconds until one that does not answer a worker is an error, and tried again.
ATTEMPT = 5.0


class KafkaSource(Source):
    """Topics of a Kafka cluster.

    Partitions are read by ``assign``, never by ``subscribe``: the driver assigns them, and no
    rebalance stops all readers for seconds.

    Parameters
    ----------
    brokers : Brokers
    topics : sequence of str
    group : str
        Group of the committed offsets; their metadata is the run.
    start : "earliest" or "latest"
        First offset of a partition without a committed one.

    Examples
    --------
    >>> from daskdl.stream import Brokers
    >>> source = KafkaSource(Brokers("kafka:9093"), ["calls"], group="routing")
    >>> source.topics, source.group
    (['calls'], 'routing')
    """

    def __init__(
        self,
        brokers: Brokers,
        topics: Sequence[str],
        group: str = "daskdl",
        start: Literal["earliest", "latest"] = "earliest",
    ) -> None:
        if start not in ("earliest", "latest"):
            raise SettingsError(f"start: expected earliest or latest, found {start!r}")
        self.brokers, self.topics, self.group, self.start = brokers, list(topics), group, start

    def __getstate__(self) -> dict[str, Any]:
        connections = "_consumer", "_admin"
        return {name: value for name, value in vars(self).items() if name not in connections}

    def consumer(self) -> Any:
        """Return a consumer of this group without partitions."""
        return self.brokers.client(
            "Consumer",
            group_id=self.group,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            enable_partition_eof=True,
            auto_offset_reset="error",
            isolation_level="read_committed",
            fetch_wait_max_ms=100,
            fetch_error_backoff_ms=50,
            queued_max_messages_kbytes=16384,
        )

    @cached_property
    def _consumer(self) -> Any:
        return self.consumer()

    @cached_property
    def _admin(self) -> Any:
        return self.brokers.client("AdminClient")

    def partitions(self) -> list[Partition]:
        """Return all current partitions."""
        kafka = confluent()
        partitions = []
        for topic in self.topics:
            try:
                listed = self._consumer.list_topics(topic, timeout=PATIENCE).topics[topic]
            except kafka.KafkaException as error:
                raise self.brokers.unreachable("source", error.args[0].str()) from error
            if listed.error is not None or not listed.partitions:
                raise SettingsError(
                    f"source, topic {topic}: expected a topic of {self.brokers.servers}, found "
                    f"{listed.error and listed.error.str()}; make it first, or see its name"
                )
            partitions += [Partition(topic, number) for number in sorted(listed.partitions)]
        return partitions

    def claim(self, run: str) -> None:
        """Commit all offsets again in the name of a run; first offsets where there are none."""
        kafka, consumer = confluent(), self._consumer
        try:
            offsets = []
            for it in self._committed():
                if it.offset < 0:
                    low, high = consumer.get_watermark_offsets(it, timeout=PATIENCE)
                    it.offset = low if self.start == "earliest" else high
                where = it.topic, it.partition, it.offset
                offsets.append(kafka.TopicPartition(*where, run))
            for it in consumer.commit(offsets=offsets, asynchronous=False):
                if it.error is not None:
                    raise kafka.KafkaException(it.error)
        except kafka.KafkaException as error:
            raise self.brokers.unreachable(f"group {self.group}", error.args[0].str()) from error

    def claimed_by(self) -> str | None:
        """Return the latest run that has committed; names of runs begin with their time."""
        return max((it.metadata for it in self._committed() if it.metadata), default=None)

    def ends(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Return the offset after the last record of each partition."""
        from confluent_kafka.admin import OffsetSpec

        kafka = confluent()
        latest = OffsetSpec.latest()
        wanted = {kafka.TopicPartition(*p): latest for p in partitions}
        asked = self._admin.list_offsets(wanted, request_timeout=PATIENCE)
        return {
            Partition(it.topic, it.partition): answer.result().offset
            for it, answer in asked.items()
        }

    def _committed(self) -> list[Any]:
        kafka = confluent()
        wanted = [kafka.TopicPartition(*p) for p in self.partitions()]
        committed: list[Any] = self._consumer.committed(wanted, timeout=PATIENCE)
        return committed

    def reader(self, run: str) -> KafkaReader:
        """Return a reader without partitions."""
        return KafkaReader(self.consumer, run)

    def close(self) -> None:
        """Close the driver's connection."""
        if "_consumer" in vars(self):
            vars(self).pop("_consumer").close()


class KafkaReader(Places):
    """Reads assigned partitions of Kafka; ``run`` is the metadata of the offsets it commits."""

    def __init__(self, connect: Callable[[], Any], run: str) -> None:
        super().__init__()
        self._connect, self._run, self._kafka = connect, run, confluent()
        self._consumer = connect()
        # Calls of two threads on one consumer wait for each other, and while one of them polls the
        # other may wait for ever. So the thread that commits has what it needs for itself.
        self._committing: Any = None
        self._metadata = self._consumer.consumer_group_metadata()
        self._named: dict[tuple[str, int], Partition] = {}
        #: Offsets that the broker no longer had, by retention or a loss of its own.
        self.missing = 0

    def assign(self, partitions: Sequence[Partition]) -> None:
        """Read only these; new ones from their committed offset on."""
        wanted = set(partitions)
        gone = [p for p in self._next if p not in wanted]
        if gone:
            self._consumer.incremental_unassign([self._kafka.TopicPartition(*p) for p in gone])
        for p in gone:
            del self._next[p]
            self._at_end.discard(p)
        self._begin([p for p in partitions if p not in self._next])

    def rewind(self) -> None:
        """Read all partitions again from their committed offsets on."""
        partitions = list(self._next)
        self._consumer.unassign()
        self._next.clear()
        self._at_end.clear()
        self._begin(partitions)

    def _begin(self, partitions: Sequence[Partition]) -> None:
        if not partitions:
            return
        wanted = [self._kafka.TopicPartition(*p) for p in partitions]
        committed = self._consumer.committed(wanted, timeout=ATTEMPT)
        for it in committed:
            if it.error is not None:
                raise self._kafka.KafkaException(it.error)
            it.offset = max(it.offset, 0)  # the driver has committed the first
            place = Partition(it.topic, it.partition)
            self._next[place] = it.offset
            self._named[it.topic, it.partition] = place
        self._consumer.incremental_assign(
            [self._kafka.TopicPartition(it.topic, it.partition, it.offset) for it in committed]
        )

    def poll(self, limit: int, wait: float) -> list[Record]:
        """Return up to ``limit`` records as soon as there are any, none after ``wait`` seconds."""
        first = self._consumer.poll(wait)
        if first is None:
            return []
        messages = [first]
        if limit > 1:  # what has come meanwhile; consume would wait for all of ``limit``
            messages += self._consumer.consume(limit - 1, 0)
        records: list[Record] = []
        following, named, at_end = self._next, self._named, self._at_end
        for message in messages:
            partition = named.get((message.topic(), message.partition()))
            if message.error() is not None:
                self._not_a_record(message, partition)
            elif partition in following:
                offset = message.offset()
                following[partition] = offset + 1
                if at_end:
                    at_end.discard(partition)
                records.append(
                    Record(
                        partition, offset, message.timestamp()[1], message.key(), message.value()
                    )
                )
        return records

    def _not_a_record(self, message: Any, partition: Partition | None) -> None:
        error = message.error()
        if partition not in self._next or partition is None:
            logger.warning("%s", error.str())
        elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
            # Past markers of transactions and what compaction took away, where nothing comes.
            self._next[partition] = max(self._next[partition], message.offset())
            self._at_end.add(partition)
        elif error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
            self._seek_to_resume_offset(partition)
        elif error.fatal():
            raise self._kafka.KafkaException(error)
        else:
            logger.warning("%s: %s", partition, error.str())

    def _seek_to_resume_offset(self, partition: Partition) -> None:
        """Continue at the first record that the broker still has."""
        where, at = self._kafka.TopicPartition(*partition), self._next[partition]
        low, high = self._consumer.get_watermark_offsets(where, timeout=ATTEMPT)
        where.offset = low if at < low else high
        self.missing += abs(where.offset - at)
        logger.warning(
            "%s: offset %d is not there, of %d to %d; going on at %d", partition, at, low, high,
            where.offset,
        )  # fmt: skip
        self._next[partition] = where.offset
        self._consumer.incremental_unassign([where])
        self._consumer.incremental_assign([where])

    def offsets(self, positions: Mapping[Partition, int]) -> list[Any]:
        """Return positions in confluent-kafka's form."""
        return [
            self._kafka.TopicPartition(p.topic, p.number, offset, self._run)
            for p, offset in positions.items()
        ]

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Commit offsets: all before them is done."""
        if not positions:
            return
        if self._committing is None:
            self._committing = self._connect()
        self._committing.commit(offsets=self.offsets(positions), asynchronous=False)

    def metadata(self) -> Any:
        """Return the metadata of this reader's group, for a transaction."""
        return self._metadata

    def close(self) -> None:
        """Close connections."""
        self._consumer.close()
        if self._committing is not None:
            self._committing.close()
