from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Coroutine, Iterator
from typing import Any

import numpy as np
import pytest
from distributed.comm import connect

from daskdl.collective.rendezvous import BrokenGangError, Kept, Meeting
from tests.daskdl.train.meetings import Pair, pair


@pytest.fixture(scope="module")
def workers() -> Iterator[Pair]:
    with pair("tcp") as workers:
        yield workers


@pytest.fixture
def run() -> str:
    return uuid.uuid4().hex


def call(meeting: Meeting, work: Coroutine[Any, Any, Any]) -> Any:
    loop = meeting.worker.loop.asyncio_loop
    return asyncio.run_coroutine_threadsafe(work, loop).result(20)


def test_either_may_come_first(workers: Pair, run: str) -> None:
    for attempt, first in enumerate((0, 1)):
        one, other = (workers.exchange(rank, run, attempt) for rank in (first, 1 - first))
        waiting = workers.threads.submit(one.open)
        other.open()
        waiting.result(20)
        one.close()
        other.close()


@pytest.mark.parametrize("rank", [0, 1])
def test_waiting_for_one_who_does_not_come_ends(workers: Pair, run: str, rank: int) -> None:
    alone = workers.exchange(rank, run, patience=0.2)
    # Who connects finds the address open, and that nobody speaks.
    why = "did not come within" if rank == 0 else "sent nothing for"
    with pytest.raises(BrokenGangError, match=rf"worker .* {why} 0.2 s"):
        alone.open()
    alone.close()


def test_an_address_where_nobody_is_is_named(workers: Pair, run: str) -> None:
    exchange = workers.exchange(1, run, patience=0.3)
    exchange._peers[0] = "tcp://127.0.0.1:9"
    with pytest.raises(BrokenGangError, match=r"worker tcp://127.0.0.1:9 "):
        exchange.open()


def test_an_attempt_that_is_ended_from_outside_says_why(workers: Pair, run: str) -> None:
    waiting = workers.threads.submit(workers.exchange(0, run, 3).open)
    meeting = workers.meetings[0]
    limit = time.monotonic() + 20
    while not any(key[0] == run for key in list(meeting._came)):
        assert time.monotonic() < limit
    call(meeting, meeting.end(run, 3, "worker 1 is lost"))
    with pytest.raises(BrokenGangError, match="worker 1 is lost"):
        waiting.result(20)
    with pytest.raises(BrokenGangError, match="worker 1 is lost"):  # who comes later, too
        workers.exchange(0, run, 3).open()
    assert not any(key[0] == run for key in meeting._came)
    for exchange in workers.opened(run, 4):  # the next attempt is another matter
        exchange.close()
    for meeting in workers.meetings:
        call(meeting, meeting.forget(run))


def test_who_still_tries_to_connect_hears_of_the_end(workers: Pair, run: str) -> None:
    """To a killed worker's address Dask connects again and again, until its time is over."""
    exchange, meeting = workers.exchange(1, run, patience=60), workers.meetings[1]
    exchange._peers[0] = "tcp://127.0.0.1:9"
    waiting = workers.threads.submit(exchange.open)
    limit = time.monotonic() + 20
    while not any(key[0] == run for key in list(meeting._came)):
        assert time.monotonic() < limit
    call(meeting, meeting.end(run, 0, "worker 0 is lost"))
    with pytest.raises(BrokenGangError, match="worker 0 is lost"):
        waiting.result(20)


def test_who_waits_for_bytes_hears_of_the_end(workers: Pair, run: str) -> None:
    one, other = workers.opened(run)
    waiting = workers.threads.submit(other.swap, 6, "reduce", {}, {0: []})
    meeting = workers.meetings[1]
    call(meeting, meeting.end(run, 0, "worker 0 is lost"))
    with pytest.raises(BrokenGangError, match="iteration 6, reduce: worker 0 is lost"):
        waiting.result(20)
    one.close()
    other.close()


def test_nobody_joins_an_attempt_that_is_over(workers: Pair, run: str) -> None:
    meeting = workers.meetings[0]
    call(meeting, meeting.end(run, 5, "enough"))

    async def come(attempt: int) -> bool:
        comm = await connect(meeting.worker.address)
        where = {"run": run, "attempt": attempt, "rank": 1}
        await comm.write({"op": "daskdl_gang_join", "reply": False, **where})
        try:
            await asyncio.wait_for(comm.read(), 20 if attempt <= 5 else 0.3)
        except TimeoutError:
            return True
        except OSError:
            return False
        finally:
            comm.abort()
        raise AssertionError("it was answered")

    assert not call(meeting, come(5))
    assert not call(meeting, come(0))
    assert call(meeting, come(6))
    call(meeting, meeting.forget(run))


def test_the_state_of_the_last_two_runs_is_kept(workers: Pair) -> None:
    meeting = workers.meetings[0]
    kept = Kept("gang", 3, np.zeros(1, np.float32), {})
    for run in ("a", "b", "a", "c"):
        meeting.keep(run, 0, kept)
    assert list(meeting.kept) == ["a", "c"]
    call(meeting, meeting.forget("a"))
    assert list(meeting.kept) == ["c"]
    call(meeting, meeting.forget("c"))
    call(meeting, meeting.forget("c"))


def test_a_member_that_comes_to_its_end_late_keeps_nothing(workers: Pair) -> None:
    meeting = workers.meetings[0]
    kept = Kept("gang", 3, np.zeros(1, np.float32), {})
    call(meeting, meeting.end("late", 0, "a peer is lost"))
    meeting.keep("late", 0, kept)
    assert "late" not in meeting.kept
    meeting.keep("late", 1, kept)
    assert "late" in meeting.kept
    call(meeting, meeting.forget("late"))
    meeting.keep("late", 1, kept)
    assert "late" not in meeting.kept
