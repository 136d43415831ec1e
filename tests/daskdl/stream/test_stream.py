"""Streams on two workers: every record answered, in order, with the model of the moment."""

from __future__ import annotations

import pytest

from ci.kafka_broker import answers_of, make_topics, offsets_of, produce, read_all
from daskdl.stream import Brokers, KafkaSink, KafkaSource, Limits, Routes, Stream
from tests.daskdl.stream.models import text_model, utterances

pytest.importorskip("confluent_kafka")


def stream_of(brokers, name, model, exactly_once=False, **options) -> Stream:
    sink = KafkaSink(brokers, name, exactly_once)
    routes = Routes(f"{name}-out", f"{name}-dead")
    return Stream(KafkaSource(brokers, [name], name), sink, model, routes, **options)


def in_order(brokers, topic, records: int, partitions: int = 4) -> None:
    found = read_all(brokers.servers, topic)
    for number, messages in found.items():
        expected = len(range(number, records, partitions))
        assert offsets_of(messages) == list(range(expected))


@pytest.mark.parametrize("exactly_once", [False, True])
def test_every_record_is_answered_once_and_in_order(client, real, name, model, exactly_once):
    brokers = Brokers(real.servers)
    make_topics(real.servers, 4, name, f"{name}-out", f"{name}-dead")
    values = utterances(400)
    produce(real.servers, name, 4, values)
    status = stream_of(brokers, name, model, exactly_once).run(client, until_end=True, seconds=60)
    told = status.as_dict()
    assert (told["records"], told["answers"], told["dead_letters"]) == (400, 400, 0)
    assert told["latency_ms"]["p99"] > 0
    in_order(brokers, f"{name}-out", 400)
    # Another run begins where this has ended.
    produce(real.servers, name, 4, values[:4])
    again = stream_of(brokers, name, model, exactly_once).run(client, until_end=True, seconds=60)
    assert again.records == 4
    in_order(brokers, f"{name}-out", 404)


def test_both_workers_have_partitions_and_poison_is_set_aside(client, mock, name, model):
    values = [b"\xff" if i % 50 == 0 else v for i, v in enumerate(utterances(400))]
    produce(mock.servers, name, 4, values)
    shares = []

    def watch(stream: Stream) -> None:
        shares.append({w: len(r.positions) for w, r in stream.status.workers.items()})

    status = stream_of(mock, name, model).run(client, until_end=True, seconds=60, watch=watch)
    assert sorted(shares[-1].values()) == [2, 2]
    assert status.as_dict()["dead_letters"] == 8
    dead = [m for ms in read_all(mock.servers, f"{name}-dead").values() for m in ms]
    assert {m.value() for m in dead} == {b"\xff"}
    assert all(dict(m.headers())["reason"].startswith(b"decode") for m in dead)


def test_the_model_is_swapped_between_two_batches(client, mock, name, model, tmp_path):
    other = text_model(tmp_path, "second", seed=9)
    produce(mock.servers, name, 4, utterances(40))
    steps = []

    def watch(stream: Stream) -> None:
        done = stream.status.records
        if done >= 40 and not steps:
            steps.append(stream.swap(other))
        if len(steps) == 1 and all(
            other.sha256 in r.models for r in stream.status.workers.values()
        ):
            steps.append("there")
            produce(mock.servers, name, 4, utterances(40))
        if done >= 80:
            stream.stop()

    status = stream_of(mock, name, model).run(client, seconds=60, watch=watch)
    assert status.as_dict()["models"] == [model.sha256, other.sha256]
    for messages in read_all(mock.servers, f"{name}-out").values():
        used = [answer["sha256"] for answer in answers_of(messages)]
        assert used == [model.sha256] * 10 + [other.sha256] * 10


def test_a_slow_sink_slows_reading_down(client, mock, name, model):
    """With small batches and none ahead, positions stay near what is committed."""
    produce(mock.servers, name, 4, utterances(300))
    limits = Limits(batch=10, under_way=1)
    ahead = []

    def watch(stream: Stream) -> None:
        reports = stream.status.workers.values()
        read = sum(n for r in reports for _, _, n, _ in r.positions)
        if stream.status.workers:
            ahead.append(read - sum(r.records for r in reports))

    stream_of(mock, name, model, limits=limits).run(client, until_end=True, seconds=60, watch=watch)
    # A batch that is being made, one that waits, and those being committed, on two workers.
    assert max(ahead) <= 2 * 4 * 10
