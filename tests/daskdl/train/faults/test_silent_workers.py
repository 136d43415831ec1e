"""Workers that are stopped for good: engines go on without them, long before their peers' time."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from distributed import Client

from tests.daskdl.train.runs import Do, Once, digest, fit, problem

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


class StopOwn:
    """Stops the process that it is called in, in the middle of its task."""

    def __call__(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)


@pytest.fixture
def woken(client_of: ClientOf) -> Iterator[Client]:
    """Three workers, which are woken at the end whatever stopped them."""
    client = client_of(3)
    pids = list(client.run(os.getpid).values())
    yield client
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_the_graph_engine_goes_on_without_a_worker_that_is_stopped_in_its_task(
    woken: Client, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    whole = digest(fit(problem(6), epochs=2, client=False))
    stopping = problem(6).map(Once(tmp_path / "stopped", 20, StopOwn()))
    with caplog.at_level(logging.WARNING, "daskdl"):
        trainer = fit(stopping, epochs=2, client=woken, engine="graph")
    assert (tmp_path / "stopped").exists()
    assert digest(trainer) == whole
    assert any("has sent no heartbeat for" in text for text in caplog.messages)


def test_an_evaluation_goes_on_without_a_worker_that_is_stopped_in_its_task(
    woken: Client, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    trainer = fit(problem(6), epochs=1, client=False)
    alone = trainer.evaluate(problem(6), client=False)
    stopping = problem(6).map(Once(tmp_path / "stopped", 20, StopOwn()))
    with caplog.at_level(logging.WARNING, "daskdl"):
        assert trainer.evaluate(stopping, client=woken) == alone
    assert (tmp_path / "stopped").exists()
    assert any("has sent no heartbeat for" in text for text in caplog.messages)
