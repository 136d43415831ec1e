"""Stops of a minute, as of a machine that sleeps, and clocks that jump, beside real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.daskdl.train.beside import EPOCHS, plain
from tests.daskdl.train.faults.test_neighbours import begun

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

#: Seconds of a stop.
STOP = 60
#: Where Debian has the library that makes a process believe in another time.
FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)


def watched(process: subprocess.Popen[str], after: Callable[[int, list[int]], None]) -> str:
    """Call ``after(epoch, pids)`` after each epoch; return the digest of the weights."""
    assert process.stdin is not None
    assert process.stdout is not None
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
    """Return a fit on a cluster of its own, which waits after each epoch."""
    process = begun("watched")
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("who", ["one worker", "driver and scheduler", "all"])
def test_a_stop_of_a_minute(process: subprocess.Popen[str], who: str) -> None:
    def after(epoch: int, pids: list[int]) -> None:
        if epoch != 1:
            return
        stopped = {"one worker": pids[1:2], "driver and scheduler": pids[:1], "all": pids}[who]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        process.stdin.write("\n")  # the fit goes on without those
        process.stdin.flush()
        try:
            time.sleep(STOP)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)

    assert watched(process, after) == plain()


@pytest.mark.skipif(FAKETIME is None, reason="no libfaketime here: apt-get install libfaketime")
@pytest.mark.parametrize("jump", ["+3600", "-3600"])
def test_a_clock_that_jumps(tmp_path: Path, jump: str) -> None:
    stamp = tmp_path / "time"
    stamp.write_text("+0")
    process = begun(
        "watched", LD_PRELOAD=str(FAKETIME), FAKETIME_TIMESTAMP_FILE=str(stamp),
        FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1", DONT_FAKE_MONOTONIC="1",
    )  # fmt: skip
    epochs: list[int] = []

    def after(epoch: int, pids: list[int]) -> None:
        epochs.append(epoch)
        stamp.write_text(jump if epoch % 2 == 0 else "+0")

    try:
        assert watched(process, after) == plain()
    finally:
        process.kill()
        process.communicate()
    assert epochs == list(range(EPOCHS))
