"""Workers that stop for good: engines go on without them, long before the peers' timeout."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from distributed import Client

from tests.daskdl.train.processes import EPOCHS, fit_here, started
from tests.daskdl.train.runs import ClientOf, Do, Once, digest, fit, problem


@pytest.fixture
def woken(client_of: ClientOf) -> Iterator[Client]:
    """Three workers, which are continued at the end if something stopped them."""
    client = client_of(3)
    pids = list(client.run(os.getpid).values())
    yield client
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@pytest.mark.kills
def test_a_gang_goes_on_without_a_worker_that_is_silent(woken, caplog):
    address, pid = sorted(woken.run(os.getpid).items())[1]
    whole = digest(fit(problem(6), epochs=4, client=False))
    stopping = Do(9, lambda: os.kill(pid, signal.SIGSTOP))
    with caplog.at_level(logging.WARNING, "daskdl"):
        trainer = fit(problem(6), epochs=4, client=woken, engine="gang", callbacks=[stopping])
    assert stopping.done
    assert digest(trainer) == whole
    (line,) = (text for text in caplog.messages if "has sent no heartbeat for" in text)
    assert f"worker {address} (shard" in line


def stop_this_process() -> None:
    """Stop the calling process in the middle of its task."""
    os.kill(os.getpid(), signal.SIGSTOP)


@pytest.mark.kills
@pytest.mark.parametrize(
    "work",
    ["a fit by the graph engine", pytest.param("an evaluation", marks=pytest.mark.long)],
)
def test_work_goes_on_without_a_worker_that_stops_in_its_task(woken, caplog, tmp_path, work):
    trained = fit(problem(6), epochs=2, client=False)
    stopping = problem(6).map(Once(tmp_path / "stopped", 20, stop_this_process))
    with caplog.at_level(logging.WARNING, "daskdl"):
        if work == "an evaluation":
            alone = trained.evaluate(problem(6), client=False)
            assert trained.evaluate(stopping, client=woken) == alone
        else:
            again = fit(stopping, epochs=2, client=woken, engine="graph")
            assert digest(again) == digest(trained)
    assert (tmp_path / "stopped").exists()
    assert any("has sent no heartbeat for" in text for text in caplog.messages)


#: Seconds of a stop.
STOP = 60
#: Debian's path of the library that fakes the time of a process.
FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)


def watched(process: subprocess.Popen[str], after: Callable[[int, list[int]], None]) -> str:
    """Call ``after(epoch, pids)`` after each epoch; return the digest of the weights."""
    last = ""
    for line in process.stdout:
        last = line.strip()
        if line.startswith("epoch"):
            _, epoch, *pids = map(str, line.split())
            after(int(epoch), list(map(int, pids)))
            process.stdin.write("\n")
            process.stdin.flush()
    assert process.wait(60) == 0
    return last


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    """A fit on its own cluster, which waits after each epoch."""
    process = started("watched")
    yield process
    process.kill()
    process.communicate()


@pytest.mark.long
@pytest.mark.kills
@pytest.mark.timeout(900)
@pytest.mark.parametrize("who", ["one worker", "driver and scheduler", "all"])
def test_a_stop_of_a_minute(process, who):
    def after(epoch, pids):
        if epoch != 1:
            return
        stopped = {"one worker": pids[1:2], "driver and scheduler": pids[:1], "all": pids}[who]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        process.stdin.write("\n")  # the fit goes on without them
        process.stdin.flush()
        try:
            time.sleep(STOP)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)

    assert watched(process, after) == fit_here()


@pytest.mark.long
@pytest.mark.kills
@pytest.mark.timeout(900)
@pytest.mark.skipif(FAKETIME is None, reason="no libfaketime here: apt-get install libfaketime")
@pytest.mark.parametrize("jump", ["+3600", "-3600"])
def test_a_clock_that_jumps(tmp_path, jump):
    stamp = tmp_path / "time"
    stamp.write_text("+0")
    process = started(
        "watched", LD_PRELOAD=str(FAKETIME), FAKETIME_TIMESTAMP_FILE=str(stamp),
        FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1", DONT_FAKE_MONOTONIC="1",
    )  # fmt: skip
    epochs: list[int] = []

    def after(epoch, pids):
        epochs.append(epoch)
        stamp.write_text(jump if epoch % 2 == 0 else "+0")

    try:
        assert watched(process, after) == fit_here()
    finally:
        process.kill()
        process.communicate()
    assert epochs == list(range(EPOCHS))
