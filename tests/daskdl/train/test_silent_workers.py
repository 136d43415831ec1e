"""Workers that are stopped for good: a gang goes on without them, long before their peers' time."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from distributed import Client

from tests.daskdl.train.runs import Do, digest, fit, problem

pytestmark = pytest.mark.kills
ClientOf = Callable[[int], Client]


@pytest.fixture
def stop() -> Iterator[Callable[[int], None]]:
    """Return a function that stops a process until the test is over."""
    pids: list[int] = []

    def stop(pid: int) -> None:
        pids.append(pid)
        os.kill(pid, signal.SIGSTOP)

    yield stop
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_a_gang_goes_on_without_a_worker_that_is_silent(
    client_of: ClientOf,
    stop: Callable[[int], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = client_of(3)
    address, pid = sorted(client.run(os.getpid).items())[1]
    whole = digest(fit(problem(6), epochs=4, client=False))
    stopping = Do(9, lambda: stop(pid))
    with caplog.at_level(logging.WARNING, "daskdl"):
        trainer = fit(problem(6), epochs=4, client=client, engine="gang", callbacks=[stopping])
    assert stopping.done
    assert digest(trainer) == whole
    (line,) = (text for text in caplog.messages if "has sent no heartbeat for" in text)
    assert f"worker {address} (shard" in line
