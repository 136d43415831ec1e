"""Exchange between ranks, and requests of the driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from daskdl.collective.rendezvous import Mailbox
from daskdl.collective.transport.comm import BrokenGangError
from tests.daskdl.collective.pairs import Pair, pair


def nothing(note: object) -> list[np.ndarray]:
    return []


@pytest.fixture(scope="module", params=["tcp", "inproc"])
def workers(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with pair(request.param) as workers:
        yield workers


@pytest.fixture
def run() -> str:
    return uuid.uuid4().hex


def test_arrays_arrive_in_the_places_given(workers: Pair, run: str) -> None:
    one, other = workers.opened(run)
    mine, yours = np.arange(300_000, dtype=np.float32), np.full(3, 7, np.float32)
    places = [np.zeros_like(mine), np.zeros_like(yours)]
    for t in range(3):
        sent = {1: ([0, 2], [mine + t, yours])}
        room = {0: lambda note: [places[0], places[note[1] - 1]]}
        second = workers.threads.submit(other.swap, t, "reduce", {0: ("well", [])}, room)
        assert one.swap(t, "reduce", sent, {1: nothing}) == {1: "well"}
        assert second.result(20) == {0: [0, 2]}
        np.testing.assert_array_equal(places[0], mine + t)
        np.testing.assert_array_equal(places[1], yours)
    one.close()
    other.close()


def test_the_last_message_arrives_though_the_sender_closes(workers: Pair, run: str) -> None:
    one, other = workers.opened(run)
    large, place = np.ones(4_000_000, np.float32), np.zeros(4_000_000, np.float32)
    one.swap(0, "weights", {1: (0, [large])}, {})
    closing = workers.threads.submit(one.close)
    other.swap(0, "weights", {}, {0: lambda note: [place]})
    closing.result(20)
    other.close()
    assert place.all()


@pytest.mark.parametrize("wrong", [(1, "reduce"), (0, "weights")])
def test_a_message_of_another_iteration_or_kind_is_refused(
    workers: Pair, run: str, wrong: tuple[int, str]
) -> None:
    one, other = workers.opened(run)
    one.swap(*wrong, {1: (0, [])}, {})
    with pytest.raises(BrokenGangError, match=rf"iteration 0, reduce: worker 0 .*{wrong[1]}"):
        other.swap(0, "reduce", {}, {0: nothing})
    one.close()
    other.close()


def test_a_member_that_fails_tells_the_others_why(workers: Pair, run: str) -> None:
    one, other = workers.opened(run)
    waiting = workers.threads.submit(other.swap, 4, "reduce", {}, {0: nothing})
    one.close("ZeroDivisionError: a mistake")
    with pytest.raises(BrokenGangError) as raised:
        waiting.result(20)
    assert str(raised.value) == (
        "iteration 4, reduce: worker 0 ended the attempt: ZeroDivisionError: a mistake"
    )
    other.close()


@pytest.mark.parametrize("closes", [True, False])
def test_a_peer_that_closes_or_is_late_is_named(workers: Pair, run: str, closes: bool) -> None:
    one, other = workers.opened(run, patience=60 if closes else 0.2)
    if closes:
        one.close()
    reason = "is lost" if closes else "sent nothing for 0.2 s"
    with pytest.raises(BrokenGangError, match=f"iteration 2, reduce: worker 0 {reason}"):
        other.swap(2, "reduce", {}, {0: nothing})
    one.close()
    other.close()


def test_requests_come_in_order_and_answers_by_their_number() -> None:
    mailbox = Mailbox()
    assert mailbox.put("a")
    assert mailbox.put("b")
    assert [mailbox.take(1), mailbox.take(1)] == ["a", "b"]
    mailbox.give(3, "three")
    assert mailbox.answer(3).result(1) == "three"
    assert not mailbox.answer(4).done()
    mailbox.drop(3)
    assert not mailbox.answer(3).done()


def test_a_member_without_requests_leaves() -> None:
    mailbox = Mailbox()
    assert mailbox.take(0.01) is None
    assert not mailbox.put("too late")


def test_nobody_waits_at_a_closed_mailbox() -> None:
    mailbox = Mailbox()
    with ThreadPoolExecutor(2) as threads:
        request, answer = (
            threads.submit(mailbox.take, 60),
            threads.submit(mailbox.answer(0).result, 60),
        )
        mailbox.close()
        assert request.result(30) is None
        assert answer.result(30) is None
    assert not mailbox.put("a")
    mailbox.give(0, "nobody asks any more")
