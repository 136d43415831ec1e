from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from distributed.comm import connect

from daskdl.collective.rendezvous import Rendezvous
from daskdl.collective.transport.comm import BrokenGangError
from tests.daskdl.collective.pairs import Pair, pair


@pytest.fixture(scope="module")
def workers() -> Iterator[Pair]:
    with pair("tcp") as workers:
        yield workers


@pytest.fixture
def run() -> str:
    return uuid.uuid4().hex


def call(rendezvous: Rendezvous, work: Coroutine[Any, Any, Any]) -> Any:
    loop = rendezvous.worker.loop.asyncio_loop
    return asyncio.run_coroutine_threadsafe(work, loop).result(20)


def test_either_rank_may_come_first(workers: Pair, run: str) -> None:
    for attempt, first in enumerate((0, 1)):
        waiting = workers.threads.submit(workers.open, first, run, attempt)
        other = workers.open(1 - first, run, attempt)
        one = waiting.result(20)
        one.close()
        other.close()


@pytest.mark.parametrize("rank", [0, 1])
def test_waiting_for_an_absent_peer_ends(workers: Pair, run: str, rank: int) -> None:
    # The rank that connects finds the address open, but receives nothing.
    why = "did not come within" if rank == 0 else "sent nothing for"
    with pytest.raises(BrokenGangError, match=rf"worker .* {why} 0.2 s"):
        workers.open(rank, run, patience=0.2)


def test_an_address_without_a_worker_is_named(workers: Pair, run: str) -> None:
    with pytest.raises(BrokenGangError, match=r"worker tcp://127.0.0.1:9 "):
        workers.open(1, run, patience=0.3, peer="tcp://127.0.0.1:9")


def test_an_attempt_that_is_ended_from_outside_says_why(workers: Pair, run: str) -> None:
    waiting = workers.threads.submit(workers.open, 0, run, 3)
    rendezvous = workers.rendezvous[0]
    limit = time.monotonic() + 20
    while not any(key[0] == run for key in list(rendezvous._came)):
        assert time.monotonic() < limit
    call(rendezvous, rendezvous.end(run, 3, "worker 1 is lost"))
    with pytest.raises(BrokenGangError, match="worker 1 is lost"):
        waiting.result(20)
    with pytest.raises(BrokenGangError, match="worker 1 is lost"):  # a later rank, too
        workers.open(0, run, 3)
    assert not any(key[0] == run for key in rendezvous._came)
    for exchange in workers.opened(run, 4):  # the next attempt is not ended
        exchange.close()
    for rendezvous in workers.rendezvous:
        call(rendezvous, rendezvous.forget(run))


def test_a_rank_that_still_connects_hears_of_the_end(workers: Pair, run: str) -> None:
    """Dask connects to a killed worker's address again and again until its timeout."""
    rendezvous, nobody = workers.rendezvous[1], "tcp://127.0.0.1:9"
    waiting = workers.threads.submit(workers.open, 1, run, patience=60, peer=nobody)
    limit = time.monotonic() + 20
    while not any(key[0] == run for key in list(rendezvous._came)):
        assert time.monotonic() < limit
    call(rendezvous, rendezvous.end(run, 0, "worker 0 is lost"))
    with pytest.raises(BrokenGangError, match="worker 0 is lost"):
        waiting.result(20)


def test_a_rank_that_waits_for_bytes_hears_of_the_end(workers: Pair, run: str) -> None:
    one, other = workers.opened(run)
    waiting = workers.threads.submit(other.swap, 6, "reduce", {}, {0: lambda note: []})
    rendezvous = workers.rendezvous[1]
    call(rendezvous, rendezvous.end(run, 0, "worker 0 is lost"))
    with pytest.raises(BrokenGangError, match="iteration 6, reduce: worker 0 is lost"):
        waiting.result(20)
    one.close()
    other.close()


def test_nobody_joins_an_attempt_that_is_over(workers: Pair, run: str) -> None:
    rendezvous = workers.rendezvous[0]
    call(rendezvous, rendezvous.end(run, 5, "enough"))

    async def joins(attempt: int) -> bool:
        comm = await connect(rendezvous.worker.address)
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

    assert not call(rendezvous, joins(5))
    assert not call(rendezvous, joins(0))
    assert call(rendezvous, joins(6))
    call(rendezvous, rendezvous.forget(run))


def test_the_state_of_the_last_two_runs_is_kept(workers: Pair) -> None:
    rendezvous = workers.rendezvous[0]
    state = {"iteration": 3}
    for run in ("a", "b", "a", "c"):
        rendezvous.keep(run, 0, state)
    assert list(rendezvous.kept) == ["a", "c"]
    call(rendezvous, rendezvous.forget("a"))
    assert list(rendezvous.kept) == ["c"]
    call(rendezvous, rendezvous.forget("c"))
    call(rendezvous, rendezvous.forget("c"))


def test_a_member_that_ends_late_keeps_nothing(workers: Pair) -> None:
    rendezvous = workers.rendezvous[0]
    state = {"iteration": 3}
    call(rendezvous, rendezvous.end("late", 0, "a peer is lost"))
    rendezvous.keep("late", 0, state)
    assert "late" not in rendezvous.kept
    rendezvous.keep("late", 1, state)
    assert "late" in rendezvous.kept
    call(rendezvous, rendezvous.forget("late"))
    rendezvous.keep("late", 1, state)
    assert "late" not in rendezvous.kept
