"""Readers and writers of Kafka: committed offsets, ends, transactions, fencing, settings."""

from __future__ import annotations

import pickle

import pytest

from ci.kafka import make_topics, offsets_of, produce, read_all
from daskdl.errors import ClusterError, SettingsError
from daskdl.stream import Brokers, KafkaSink, KafkaSource, Output, Partition, Record
from daskdl.stream.queues.protocols import FencedError

pytest.importorskip("confluent_kafka")


def read(reader, n: int) -> list[Record]:
    records: list[Record] = []
    for _ in range(400):
        records += reader.poll(1000, 0.05)
        if len(records) >= n:
            return records
    raise AssertionError(f"{len(records)} of {n}")


def to_end(reader) -> None:
    for _ in range(400):
        reader.poll(1000, 0.05)
        if reader.at_end() == set(reader.positions()):
            return
    raise AssertionError("no end")


def outputs(records: list[Record], topic: str) -> list[Output]:
    return [Output(r, topic, b"{}") for r in records]


def test_reading_goes_on_at_the_committed_offset(mock, name):
    produce(mock.servers, name, 4, [b"%d" % i for i in range(40)])
    source = KafkaSource(mock, [name], name)
    assert source.partitions() == [Partition(name, i) for i in range(4)]
    source.claim("run-1")
    one, two = source.partitions()[:2]
    reader = source.reader("run-1")
    reader.assign([one])
    first = read(reader, 10)
    assert [r.offset for r in first] == list(range(10))
    assert all(r.timestamp > 1e12 for r in first)
    reader.commit({one: 4})
    reader.assign([one, two])  # a partition keeps its position
    assert {r.partition for r in read(reader, 10)} == {two}
    reader.rewind()
    assert sorted(r.offset for r in read(reader, 16) if r.partition == one) == list(range(4, 10))
    assert source.claimed_by() == "run-1"
    reader.close()
    again = source.reader("run-2")
    again.assign([one])
    assert read(again, 6)[0].offset == 4
    again.close()
    source.close()


def test_latest_begins_at_the_end_once_and_for_all(mock, name):
    produce(mock.servers, name, 4, [b"old"] * 8)
    source = KafkaSource(mock, [name], name, start="latest")
    source.claim("run")
    produce(mock.servers, name, 4, [b"new"] * 4)  # before anyone reads
    reader = source.reader("run")
    reader.assign(source.partitions())
    assert [r.value for r in read(reader, 4)] == [b"new"] * 4
    to_end(reader)
    reader.close()
    source.close()


def test_answers_keep_their_partition_and_order(mock, name):
    records = [Record(Partition("calls", i % 3), i, 0, None, b"") for i in range(60)]
    sink = KafkaSink(mock, name)
    writer = sink.writer(0)
    source = KafkaSource(mock, [name], name)
    reader = source.reader("run")
    writer.write(outputs(records, name))
    writer.commit(reader, {})
    messages = read_all(mock.servers, name)
    assert [offsets_of(messages[i]) for i in range(3)] == [list(range(i, 60, 3)) for i in range(3)]
    writer.close()
    reader.close()


def test_a_fenced_writer_commits_nothing(real, name):
    """The writer was thought dead and wakes up in the middle of a transaction."""
    make_topics(real.servers, 2, name, f"{name}-out")
    produce(real.servers, name, 2, [b"a"] * 20)
    brokers = Brokers(real.servers)
    source, sink = KafkaSource(brokers, [name], name), KafkaSink(brokers, name, exactly_once=True)
    source.claim("run")
    reader = source.reader("run")
    reader.assign(source.partitions())
    writer = sink.writer(0)
    records = read(reader, 20)
    writer.write(outputs(records[:10], f"{name}-out"))
    sink.fence(0)
    writer.write(outputs(records[10:], f"{name}-out")[:0])
    with pytest.raises(FencedError):
        writer.commit(reader, reader.positions())
    assert [len(m) for m in read_all(real.servers, f"{name}-out").values()] == [0, 0]
    # The next one begins where nothing was committed, and its answers count.
    other, again = sink.writer(0), source.reader("run")
    again.assign(source.partitions())
    other.write(outputs(read(again, 20), f"{name}-out"))
    other.commit(again, again.positions())
    messages = read_all(real.servers, f"{name}-out")
    assert [offsets_of(messages[i]) for i in range(2)] == [list(range(10))] * 2
    for it in (writer, other, reader, again, source):
        it.close()


def test_markers_of_transactions_do_not_hide_the_end(real, name):
    """A topic that was written in transactions ends behind its last record."""
    make_topics(real.servers, 1, name, f"{name}-out")
    brokers = Brokers(real.servers)
    source, sink = KafkaSource(brokers, [name], name), KafkaSink(brokers, name, exactly_once=True)
    source.claim("run")
    reader, writer = source.reader("run"), sink.writer(0)
    record = Record(Partition("elsewhere", 0), 0, 0, None, b"x")
    for _ in range(3):
        writer.write([Output(record, name, b"x")])
        writer.commit(reader, {})
    reader.assign(source.partitions())
    to_end(reader)
    (end,) = source.ends(source.partitions()).values()
    assert list(reader.positions().values()) == [end]
    for it in (reader, writer, source):
        it.close()


def test_records_that_were_deleted_before_they_were_read_are_counted(real, name):
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    produce(real.servers, name, 1, [b"%d" % i for i in range(20)])
    source = KafkaSource(Brokers(real.servers), [name], name)
    source.claim("run")
    admin = AdminClient({"bootstrap.servers": real.servers})
    deletions = admin.delete_records([TopicPartition(name, 0, 8)])
    assert [future.result(20).low_watermark for future in deletions.values()] == [8]
    reader = source.reader("run")
    reader.assign(source.partitions())
    assert [r.offset for r in read(reader, 12)] == list(range(8, 20))
    assert reader.missing == 8
    to_end(reader)
    reader.close()
    source.close()


def test_a_topic_that_was_made_anew_is_read_from_its_end(mock, name):
    produce(mock.servers, name, 4, [b"%d" % i for i in range(40)])
    source = KafkaSource(mock, [name], name)
    one = source.partitions()[0]
    source.claim("run")
    reader = source.reader("run")
    reader.assign([one])
    read(reader, 10)
    reader.commit({one: 25})  # of an earlier topic of this name
    reader.close()
    again = source.reader("run")
    again.assign([one])
    for _ in range(200):
        assert not again.poll(10, 0.05)
        if again.missing:
            break
    assert again.missing == 15
    assert again.positions() == {one: 10}
    produce(mock.servers, name, 4, [b"new"] * 4)
    assert [r.value for r in read(again, 1)] == [b"new"]
    again.close()
    source.close()


def test_secrets_are_not_shown_and_settings_of_the_stream_are_refused():
    brokers = Brokers("b:9092", {"sasl.username": "u", "sasl.password": "hidden"})
    source = KafkaSource(brokers, ["calls"])
    assert "hidden" not in f"{brokers!r} {brokers} {source!r} {vars(source)}"
    assert pickle.loads(pickle.dumps(source)).brokers.servers == "b:9092"
    with pytest.raises(SettingsError, match=r"expected none of the stream's own, found enable\.au"):
        Brokers("b:9092", {"enable.auto.commit": True})
    with pytest.raises(SettingsError) as error:
        Brokers("b:9092", {"sasl.passwort": "hidden"}).client("Producer")
    assert "sasl.passwort" in str(error.value)
    assert "hidden" not in str(error.value)


def test_topics_are_made_and_missing_brokers_are_named(real, name, monkeypatch):
    KafkaSink(Brokers(real.servers), name, create_topics=True).check(
        [Partition(name, i) for i in range(3)], [name]
    )
    assert len(read_all(real.servers, name)) == 3
    monkeypatch.setattr("daskdl.stream.queues.kafka_source.PATIENCE", 0.2)
    with pytest.raises(ClusterError, match="expected Kafka brokers to answer at 127"):
        KafkaSource(Brokers("127.0.0.1:1", {"log_level": 0}), ["calls"]).partitions()
