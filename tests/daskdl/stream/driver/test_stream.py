"""Streams on workers: every record once, and partitions that one worker reads at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.kafka import answers_of, produce, read_all
from daskdl.errors import ModelFileError
from daskdl.stream import Limits, ModelFile, Stream
from daskdl.stream.driver.partitions import Ownership, fair
from daskdl.stream.queues.records import Partition
from tests.daskdl.stream.models import (
    begun,
    number_model,
    once_and_in_order,
    stream_of,
    text_model,
    utterances,
)

pytest.importorskip("confluent_kafka")


@pytest.mark.slow
@pytest.mark.parametrize("exactly_once", [False, True])
def test_every_record_is_answered_once_and_in_order(client, real, name, model, exactly_once):
    brokers = begun(real, name, 400)
    status = stream_of(brokers, name, model, exactly_once).run(client, until_end=True, seconds=60)
    report = status.as_dict()
    assert (report["records"], report["answers"], report["dead_letters"]) == (400, 400, 0)
    assert report["latency_ms"]["p99"] > 0
    once_and_in_order(real.servers, name, 400)
    # Another run begins where this one ended.
    produce(real.servers, name, 4, utterances(4))
    again = stream_of(brokers, name, model, exactly_once).run(client, until_end=True, seconds=60)
    assert again.records == 4
    once_and_in_order(real.servers, name, 404)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_slow_sink_slows_reading_down(client, mock, name, model):
    """With small batches and none ahead, positions stay near the committed ones."""
    produce(mock.servers, name, 4, utterances(300))
    limits = Limits(batch=10, under_way=1)
    ahead = []

    def watch(stream: Stream) -> None:
        reports = stream.status.workers.values()
        read = sum(n for r in reports for _, _, n, _ in r.positions)
        if stream.status.workers:
            ahead.append(read - sum(r.records for r in reports))

    stream_of(mock, name, model, limits=limits).run(client, until_end=True, seconds=60, watch=watch)
    # Batches that are being made, that wait and that are being committed, on two workers.
    assert max(ahead) <= 2 * 4 * 10


@pytest.mark.slow
def test_a_model_that_does_not_fit_leaves_the_old_one_at_work(client, mock, name, tmp_path):
    """Whether a model of numbers fits is known only where there are messages."""
    model, other = number_model(tmp_path, 3), number_model(tmp_path, 5)
    produce(mock.servers, name, 4, [b"[1, 2, 3]"] * 40)
    steps: list[str] = []

    def watch(stream: Stream) -> None:
        if stream.status.records == 40 and not steps:
            with pytest.raises(ModelFileError, match="not a whole safetensors file"):
                stream.swap(ModelFile("broken", b"nothing"))
            steps.append(stream.swap(other))
        if stream.status.rejected:
            if len(steps) == 1:
                steps.append("rejected")
                produce(mock.servers, name, 4, [b"[1, 2, 3]"] * 40)
            if stream.status.records == 80:
                stream.stop()

    status = stream_of(mock, name, model).run(client, seconds=60, watch=watch)
    assert "expected a model for messages such as" in status.rejected[other.sha256]
    answers = [a for ms in read_all(mock.servers, f"{name}-out").values() for a in answers_of(ms)]
    assert [a["sha256"] for a in answers] == [model.sha256] * 80
    assert {a["label"] for a in answers} <= {"no", "yes"}


@pytest.mark.slow
def test_workers_that_come_and_go_get_and_leave_their_share(client_of, cluster, mock, name, model):
    client = client_of(2)
    shares: list[list[int]] = []
    produce(mock.servers, name, 4, utterances(40))

    def watch(stream: Stream) -> None:
        now = sorted(len(r.positions) for r in stream.status.workers.values())
        if now != (shares[-1] if shares else []):
            shares.append(now)
        if now == [2, 2] and cluster.requested != set() and len(cluster.plan) == 2:
            cluster.scale(3) if [1, 1, 2] not in shares else stream.stop()
        if now == [1, 1, 2] and len(cluster.plan) == 3:
            cluster.scale(2)

    status = stream_of(mock, name, model).run(client, seconds=100, watch=watch)
    assert shares[-1] == [2, 2]
    assert [1, 1, 2] in shares
    assert status.records == 40
    once_and_in_order(mock.servers, name, 40)


@pytest.mark.slow
def test_others_read_a_leaving_workers_partitions_once_it_ends(
    client_of, cluster, mock, name, model
):
    client, values, sent = client_of(2), utterances(400), 400
    produce(mock.servers, name, 4, values)

    def watch(stream: Stream) -> None:
        nonlocal sent
        if not stream.status.hand_overs:
            produce(mock.servers, name, 4, values)
            sent += len(values)
            if stream.status.records > 400:
                cluster.scale(1)
        elif all(r.ended for r in stream.status.workers.values()):
            stream.stop()

    status = stream_of(mock, name, model).run(client, seconds=60, watch=watch)
    once_and_in_order(mock.servers, name, sent)
    assert (len(status.hand_overs), status.records) == (1, sent)


def partitions(n: int) -> list[Partition]:
    return [Partition("calls", i) for i in range(n)]


@given(st.integers(0, 12), st.sets(st.integers(0, 6), min_size=1), st.data())
def test_shares_differ_by_one_and_few_change_hands(n, sessions, data):
    all_of = partitions(n)
    owners = {p: data.draw(st.integers(0, 6)) for p in all_of if data.draw(st.booleans())}
    shares = fair(all_of, owners, sessions)
    counts = [list(shares.values()).count(s) for s in sessions]
    assert set(shares) == set(all_of)
    assert max(counts) - min(counts) <= 1
    # A session loses only the partitions beyond its share.
    for s in sessions:
        had = [p for p in all_of if owners.get(p) == s]
        retained = [p for p in had if shares[p] == s]
        assert len(retained) == min(len(had), counts[list(sessions).index(s)])


def test_a_partition_waits_until_its_session_has_let_it_go():
    ownership, all_of = Ownership(), partitions(4)
    assert len(ownership.shares(all_of, [1])[1]) == 4
    shares = ownership.shares(all_of, [1, 2])
    assert (len(shares[1]), shares[2]) == (2, ())
    ownership.follows(1, shares[1])  # it says that it reads two only
    assert len(ownership.shares(all_of, [1, 2])[2]) == 2


@given(st.data())
def test_no_partition_is_ever_read_by_two(data):
    ownership, all_of = Ownership(), partitions(6)
    sessions: set[int] = {0}
    reading: dict[int, set[Partition]] = {0: set()}
    for step in range(1, 15):
        event = data.draw(st.sampled_from(["join", "lose", "follow"]))
        if event == "join":
            sessions.add(step)
            reading[step] = set()
        elif event == "lose" and len(sessions) > 1:
            lost = data.draw(st.sampled_from(sorted(sessions)))
            sessions.discard(lost)
            if data.draw(st.booleans()):  # fenced at once, or later
                reading.pop(lost)
                ownership.follows(lost, ())
        shares = ownership.shares(all_of, sorted(sessions))
        for session in sorted(sessions):
            if data.draw(st.booleans()):  # its report has come
                reading[session] = set(shares[session])
                ownership.follows(session, shares[session])
            else:  # or it may read the old and the new
                reading[session] |= set(shares[session])
        everything = [p for partitions_read in reading.values() for p in partitions_read]
        assert len(everything) == len(set(everything))
